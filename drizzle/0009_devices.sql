CREATE TABLE "device_contacts" (
	"username" text NOT NULL,
	"uri" text NOT NULL,
	"call_id" text NOT NULL,
	"cseq" bigint NOT NULL,
	"expires_at" bigint NOT NULL,
	"transport" text NOT NULL,
	"host" text NOT NULL,
	"port" integer NOT NULL,
	"user_agent" text NOT NULL,
	CONSTRAINT "device_contacts_username_uri_pk" PRIMARY KEY("username","uri")
);
--> statement-breakpoint
CREATE TABLE "devices" (
	"username" text PRIMARY KEY NOT NULL,
	"app_uuid" text NOT NULL,
	"secrets" "bytea" NOT NULL,
	"created_at" bigint NOT NULL,
	"changed_at" bigint NOT NULL
);
--> statement-breakpoint
ALTER TABLE "device_contacts" ADD CONSTRAINT "device_contacts_username_devices_username_fk" FOREIGN KEY ("username") REFERENCES "public"."devices"("username") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "devices" ADD CONSTRAINT "devices_app_uuid_apps_app_uuid_fk" FOREIGN KEY ("app_uuid") REFERENCES "public"."apps"("app_uuid") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "devices_app" ON "devices" USING btree ("app_uuid");