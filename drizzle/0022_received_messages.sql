CREATE TABLE "received_parts" (
	"part_id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "received_parts_part_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"app_uuid" text NOT NULL,
	"to_number" text NOT NULL,
	"from_number" text NOT NULL,
	"reference" integer NOT NULL,
	"total" smallint NOT NULL,
	"number" smallint NOT NULL,
	"alphabet" text NOT NULL,
	"octets" "bytea" NOT NULL,
	"link" text NOT NULL,
	"came_again" boolean DEFAULT false NOT NULL,
	"received_at" bigint NOT NULL,
	"message_uuid" uuid
);
--> statement-breakpoint
CREATE INDEX "received_parts_numbers" ON "received_parts" USING btree ("to_number","from_number");--> statement-breakpoint
CREATE INDEX "received_parts_waiting" ON "received_parts" USING btree ("received_at") WHERE message_uuid IS NULL;--> statement-breakpoint
CREATE INDEX "received_parts_age" ON "received_parts" USING btree ("received_at");