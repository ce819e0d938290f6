DROP INDEX "webrtc_tokens_app";--> statement-breakpoint
DROP INDEX "webrtc_tokens_expiry";--> statement-breakpoint
CREATE INDEX "webrtc_tokens_app_expiry" ON "webrtc_tokens" USING btree ("app_uuid","expires_at");