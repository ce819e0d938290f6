CREATE TABLE "rooms" (
	"room_id" uuid PRIMARY KEY NOT NULL,
	"app_uuid" text NOT NULL,
	"node_id" text NOT NULL,
	"voice_activity_events" boolean NOT NULL,
	"volume" smallint,
	"deleting" boolean NOT NULL,
	"created_at" bigint NOT NULL,
	"deleted_at" bigint
);
--> statement-breakpoint
ALTER TABLE "sessions" ADD COLUMN "room_id" text DEFAULT '' NOT NULL;--> statement-breakpoint
CREATE INDEX "rooms_live" ON "rooms" USING btree ("app_uuid","created_at") WHERE deleted_at IS NULL;--> statement-breakpoint
CREATE INDEX "rooms_deleted" ON "rooms" USING btree ("deleted_at") WHERE deleted_at IS NOT NULL;