CREATE TABLE "revoked_console_cookies" (
	"hash" "bytea" PRIMARY KEY NOT NULL,
	"expires_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE INDEX "revoked_console_cookies_expiry" ON "revoked_console_cookies" USING btree ("expires_at");