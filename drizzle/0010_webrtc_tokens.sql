CREATE TABLE "webrtc_tokens" (
	"token_id" uuid PRIMARY KEY NOT NULL,
	"app_uuid" text NOT NULL,
	"hash" "bytea" NOT NULL,
	"caller_id" text NOT NULL,
	"did" text NOT NULL,
	"client_state" text NOT NULL,
	"created_at" bigint NOT NULL,
	"expires_at" bigint NOT NULL,
	CONSTRAINT "webrtc_tokens_hash_unique" UNIQUE("hash")
);
--> statement-breakpoint
ALTER TABLE "webrtc_tokens" ADD CONSTRAINT "webrtc_tokens_app_uuid_apps_app_uuid_fk" FOREIGN KEY ("app_uuid") REFERENCES "public"."apps"("app_uuid") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "webrtc_tokens_app" ON "webrtc_tokens" USING btree ("app_uuid");--> statement-breakpoint
CREATE INDEX "webrtc_tokens_expiry" ON "webrtc_tokens" USING btree ("expires_at");