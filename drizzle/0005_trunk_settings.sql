ALTER TABLE "trunks" ADD COLUMN "settings" jsonb DEFAULT '{}'::jsonb NOT NULL;--> statement-breakpoint
ALTER TABLE "trunks" ADD COLUMN "tls_key" "bytea";