CREATE TABLE "timelines" (
	"session_uuid" uuid NOT NULL,
	"since" bigint NOT NULL,
	"entries" text NOT NULL,
	CONSTRAINT "timelines_session_uuid_since_pk" PRIMARY KEY("session_uuid","since")
);
--> statement-breakpoint
ALTER TABLE "sessions" ADD COLUMN "trunk" text DEFAULT '' NOT NULL;--> statement-breakpoint
ALTER TABLE "sessions" ADD COLUMN "answered_at" bigint;--> statement-breakpoint
ALTER TABLE "sessions" ADD COLUMN "summary" text DEFAULT '' NOT NULL;--> statement-breakpoint
CREATE INDEX "sessions_created" ON "sessions" USING btree ("created_at","session_uuid");