CREATE TABLE "api_keys" (
	"key_id" uuid PRIMARY KEY NOT NULL,
	"app_uuid" text NOT NULL,
	"hash" "bytea" NOT NULL,
	"created_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "apps" (
	"app_uuid" text PRIMARY KEY NOT NULL,
	"name" text NOT NULL,
	"webhook_url" text DEFAULT '' NOT NULL,
	"webhook_disabled" boolean DEFAULT false NOT NULL,
	"blocked_webhook_events" text[] DEFAULT '{}' NOT NULL,
	"max_rooms" integer DEFAULT 100 NOT NULL,
	"max_members_per_room" integer DEFAULT 250 NOT NULL,
	"created_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "caller_ids" (
	"app_uuid" text NOT NULL,
	"e164" text NOT NULL,
	CONSTRAINT "caller_ids_app_uuid_e164_pk" PRIMARY KEY("app_uuid","e164")
);
--> statement-breakpoint
CREATE TABLE "events" (
	"event_id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "events_event_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"webhook_id" text NOT NULL,
	"app_uuid" text NOT NULL,
	"name" text NOT NULL,
	"session_uuid" text,
	"lanes" text[] NOT NULL,
	"body" text NOT NULL,
	"traceparent" text NOT NULL,
	"at" bigint NOT NULL,
	"status" text DEFAULT 'pending' NOT NULL,
	"attempts" jsonb DEFAULT '[]'::jsonb NOT NULL
);
--> statement-breakpoint
CREATE TABLE "idempotency" (
	"app_uuid" text NOT NULL,
	"key" text NOT NULL,
	"fingerprint" text NOT NULL,
	"status" smallint,
	"body" text,
	"lease_until" bigint NOT NULL,
	"created_at" bigint NOT NULL,
	CONSTRAINT "idempotency_app_uuid_key_pk" PRIMARY KEY("app_uuid","key")
);
--> statement-breakpoint
CREATE TABLE "leases" (
	"name" text PRIMARY KEY NOT NULL,
	"holder" text NOT NULL,
	"expires_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "numbers" (
	"e164" text PRIMARY KEY NOT NULL,
	"app_uuid" text NOT NULL
);
--> statement-breakpoint
CREATE TABLE "outbox" (
	"xid" "xid8" DEFAULT pg_current_xact_id() NOT NULL,
	"event_id" bigint NOT NULL,
	"app_uuid" text NOT NULL,
	"attempts_before" integer DEFAULT 0 NOT NULL,
	CONSTRAINT "outbox_xid_event_id_pk" PRIMARY KEY("xid","event_id")
);
--> statement-breakpoint
CREATE TABLE "payment_terminals" (
	"app_uuid" text NOT NULL,
	"terminal_number" text NOT NULL,
	CONSTRAINT "payment_terminals_app_uuid_terminal_number_pk" PRIMARY KEY("app_uuid","terminal_number")
);
--> statement-breakpoint
CREATE TABLE "sessions" (
	"session_uuid" uuid PRIMARY KEY NOT NULL,
	"app_uuid" text NOT NULL,
	"node_id" text NOT NULL,
	"type" text NOT NULL,
	"state" text NOT NULL,
	"caller_id" text NOT NULL,
	"did" text NOT NULL,
	"answered" boolean NOT NULL,
	"client_state" text NOT NULL,
	"created_at" bigint NOT NULL,
	"ended_at" bigint
);
--> statement-breakpoint
CREATE TABLE "trunks" (
	"name" text PRIMARY KEY NOT NULL,
	"uri" text NOT NULL,
	"username" text,
	"password" "bytea",
	"register" boolean DEFAULT false NOT NULL,
	"inbound_cidrs" text[] NOT NULL,
	"max_channels" integer,
	"codecs" text[]
);
--> statement-breakpoint
CREATE TABLE "webhook_secrets" (
	"secret_id" uuid PRIMARY KEY NOT NULL,
	"app_uuid" text NOT NULL,
	"sealed" "bytea" NOT NULL,
	"created_at" bigint NOT NULL,
	"signs_until" bigint
);
--> statement-breakpoint
ALTER TABLE "api_keys" ADD CONSTRAINT "api_keys_app_uuid_apps_app_uuid_fk" FOREIGN KEY ("app_uuid") REFERENCES "public"."apps"("app_uuid") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "caller_ids" ADD CONSTRAINT "caller_ids_app_uuid_apps_app_uuid_fk" FOREIGN KEY ("app_uuid") REFERENCES "public"."apps"("app_uuid") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "numbers" ADD CONSTRAINT "numbers_app_uuid_apps_app_uuid_fk" FOREIGN KEY ("app_uuid") REFERENCES "public"."apps"("app_uuid") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "payment_terminals" ADD CONSTRAINT "payment_terminals_app_uuid_apps_app_uuid_fk" FOREIGN KEY ("app_uuid") REFERENCES "public"."apps"("app_uuid") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "webhook_secrets" ADD CONSTRAINT "webhook_secrets_app_uuid_apps_app_uuid_fk" FOREIGN KEY ("app_uuid") REFERENCES "public"."apps"("app_uuid") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "api_keys_app" ON "api_keys" USING btree ("app_uuid");--> statement-breakpoint
CREATE UNIQUE INDEX "events_webhook_id" ON "events" USING btree ("webhook_id");--> statement-breakpoint
CREATE INDEX "events_app" ON "events" USING btree ("app_uuid","event_id");--> statement-breakpoint
CREATE INDEX "events_session" ON "events" USING btree ("session_uuid","event_id");--> statement-breakpoint
CREATE INDEX "idempotency_age" ON "idempotency" USING btree ("created_at");--> statement-breakpoint
CREATE INDEX "numbers_app" ON "numbers" USING btree ("app_uuid");--> statement-breakpoint
CREATE INDEX "outbox_app" ON "outbox" USING btree ("app_uuid","xid","event_id");--> statement-breakpoint
CREATE INDEX "sessions_live" ON "sessions" USING btree ("app_uuid","created_at") WHERE ended_at IS NULL;--> statement-breakpoint
CREATE INDEX "sessions_ended" ON "sessions" USING btree ("ended_at") WHERE ended_at IS NOT NULL;--> statement-breakpoint
CREATE INDEX "webhook_secrets_app" ON "webhook_secrets" USING btree ("app_uuid");--> statement-breakpoint
-- Room in each page for the heap-only updates of a call's progress and of an event's attempts.
ALTER TABLE "sessions" SET (fillfactor = 80);--> statement-breakpoint
ALTER TABLE "events" SET (fillfactor = 85);--> statement-breakpoint
-- A queue: each row lives for milliseconds. Vacuum by count, not by share of the table.
ALTER TABLE "outbox" SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_insert_threshold = -1);
