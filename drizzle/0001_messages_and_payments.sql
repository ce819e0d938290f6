CREATE TABLE "charges" (
	"charge_uuid" uuid PRIMARY KEY NOT NULL,
	"operation_uuid" text NOT NULL,
	"app_uuid" text NOT NULL,
	"session_uuid" uuid NOT NULL,
	"status" text NOT NULL,
	"amount" integer NOT NULL,
	"currency" text NOT NULL,
	"provider" text NOT NULL,
	"terminal_number" text NOT NULL,
	"client_state" text NOT NULL,
	"traceparent" text NOT NULL,
	"created_at" bigint NOT NULL,
	"completed_at" bigint
);
--> statement-breakpoint
CREATE TABLE "message_parts" (
	"message_uuid" uuid NOT NULL,
	"part" smallint NOT NULL,
	"smsc_id" text NOT NULL,
	CONSTRAINT "message_parts_message_uuid_part_pk" PRIMARY KEY("message_uuid","part")
);
--> statement-breakpoint
CREATE TABLE "messages" (
	"message_uuid" uuid PRIMARY KEY NOT NULL,
	"app_uuid" text NOT NULL,
	"operation_uuid" text NOT NULL,
	"from_number" text NOT NULL,
	"to_number" text NOT NULL,
	"body" text NOT NULL,
	"encoding" text NOT NULL,
	"segments" smallint NOT NULL,
	"status" text NOT NULL,
	"error_code" text DEFAULT '' NOT NULL,
	"error_message" text DEFAULT '' NOT NULL,
	"created_at" bigint NOT NULL,
	"updated_at" bigint NOT NULL,
	"sent_at" bigint,
	"delivered_at" bigint,
	"parts" jsonb NOT NULL,
	"stage" text NOT NULL,
	"due_at" bigint NOT NULL,
	"attempts" integer DEFAULT 0 NOT NULL,
	"traceparent" text NOT NULL
);
--> statement-breakpoint
CREATE TABLE "payment_collections" (
	"operation_uuid" text NOT NULL,
	"session_uuid" uuid NOT NULL,
	"app_uuid" text NOT NULL,
	"kind" text NOT NULL,
	"client_state" text NOT NULL,
	"traceparent" text NOT NULL,
	CONSTRAINT "payment_collections_session_uuid_operation_uuid_pk" PRIMARY KEY("session_uuid","operation_uuid")
);
--> statement-breakpoint
CREATE TABLE "payment_references" (
	"reference" text PRIMARY KEY NOT NULL,
	"app_uuid" text NOT NULL,
	"session_uuid" uuid NOT NULL,
	"sealed" "bytea",
	"brand" text NOT NULL,
	"last4" text NOT NULL,
	"expires_at" bigint NOT NULL
);
--> statement-breakpoint
ALTER TABLE "message_parts" ADD CONSTRAINT "message_parts_message_uuid_messages_message_uuid_fk" FOREIGN KEY ("message_uuid") REFERENCES "public"."messages"("message_uuid") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "charges_attempting" ON "charges" USING btree ("created_at") WHERE status = 'attempting';--> statement-breakpoint
CREATE INDEX "charges_age" ON "charges" USING btree ("created_at");--> statement-breakpoint
CREATE INDEX "message_parts_smsc_id" ON "message_parts" USING btree ("smsc_id");--> statement-breakpoint
CREATE INDEX "messages_app" ON "messages" USING btree ("app_uuid","created_at");--> statement-breakpoint
CREATE INDEX "messages_due" ON "messages" USING btree ("stage","due_at") WHERE stage <> 'settled';--> statement-breakpoint
CREATE INDEX "messages_age" ON "messages" USING btree ("created_at");--> statement-breakpoint
CREATE INDEX "payment_references_session" ON "payment_references" USING btree ("session_uuid");--> statement-breakpoint
CREATE INDEX "payment_references_expiry" ON "payment_references" USING btree ("expires_at");