ALTER TABLE "apps" ADD COLUMN "allowed_destinations" text[] DEFAULT '{}' NOT NULL;--> statement-breakpoint
ALTER TABLE "apps" ADD COLUMN "blocked_destinations" text[] DEFAULT '{}' NOT NULL;