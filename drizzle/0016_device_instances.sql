ALTER TABLE "device_contacts" ADD COLUMN "instance" text DEFAULT '' NOT NULL;--> statement-breakpoint
ALTER TABLE "device_contacts" ADD COLUMN "reg_id" integer DEFAULT 0 NOT NULL;