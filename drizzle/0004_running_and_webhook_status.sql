ALTER TABLE "apps" ADD COLUMN "webhook_since" bigint DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "idempotency" ADD COLUMN "node_id" text DEFAULT '' NOT NULL;--> statement-breakpoint
ALTER TABLE "rooms" ADD COLUMN "playback" text DEFAULT '' NOT NULL;--> statement-breakpoint
ALTER TABLE "sessions" ADD COLUMN "running" text DEFAULT '' NOT NULL;--> statement-breakpoint
UPDATE "apps" SET "webhook_since" = "created_at";
