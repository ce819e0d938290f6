CREATE TABLE "cluster_meta" (
	"name" text PRIMARY KEY NOT NULL,
	"value" text NOT NULL
);
--> statement-breakpoint
CREATE TABLE "node_beats" (
	"node_id" text PRIMARY KEY NOT NULL,
	"beat" bigint NOT NULL,
	"at" bigint NOT NULL,
	"load" text NOT NULL
) WITH (fillfactor = 50);
--> statement-breakpoint
CREATE TABLE "nodes" (
	"node_id" text PRIMARY KEY NOT NULL,
	"volume_id" text NOT NULL,
	"host" text NOT NULL,
	"http_port" integer NOT NULL,
	"rtp_host" text NOT NULL,
	"sip_contact" text NOT NULL,
	"labels" text[] NOT NULL,
	"version" text NOT NULL,
	"protocol" integer NOT NULL,
	"started_at" bigint NOT NULL,
	"draining_at" bigint,
	"drain_sec" bigint,
	"drain_mode" text DEFAULT 'wait' NOT NULL,
	"dead_at" bigint,
	"dead_by" text
);
--> statement-breakpoint
ALTER TABLE "rooms" ALTER COLUMN "node_id" DROP NOT NULL;--> statement-breakpoint
ALTER TABLE "leases" ADD COLUMN "fence" bigint DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "payment_collections" ADD COLUMN "node_id" text DEFAULT '' NOT NULL;--> statement-breakpoint
ALTER TABLE "recordings" ADD COLUMN "volume_id" text DEFAULT '' NOT NULL;--> statement-breakpoint
ALTER TABLE "rooms" ADD COLUMN "epoch" integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "sessions" ADD COLUMN "epoch" integer DEFAULT 0 NOT NULL;