CREATE TABLE "recordings" (
	"recording_uuid" text PRIMARY KEY NOT NULL,
	"app_uuid" text NOT NULL,
	"session_uuid" uuid,
	"room_id" uuid,
	"operation_uuid" text NOT NULL,
	"client_state" text NOT NULL,
	"traceparent" text NOT NULL,
	"created_at" bigint NOT NULL,
	"ended_at" bigint,
	"duration_ms" bigint,
	"removed_at" bigint
);
--> statement-breakpoint
CREATE INDEX "recordings_live" ON "recordings" USING btree ("created_at") WHERE ended_at IS NULL;--> statement-breakpoint
CREATE INDEX "recordings_kept" ON "recordings" USING btree ("ended_at") WHERE removed_at IS NULL;--> statement-breakpoint
CREATE INDEX "recordings_removed" ON "recordings" USING btree ("removed_at") WHERE removed_at IS NOT NULL;