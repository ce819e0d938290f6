# Build: everything, dev dependencies included; native headers come from npm, so nothing is fetched but packages.
# Debian's own Node is older than 20. The C library is the one of the image below.
FROM node:22-bookworm-slim AS build
RUN apt-get update \
 && apt-get install -y --no-install-recommends build-essential ca-certificates libavcodec-dev libmpg123-dev libopus-dev libsrtp2-dev libssl-dev pkg-config \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm install --no-save --no-audit --no-fund
COPY native native
RUN make -C native addon
COPY bin bin
COPY console console
COPY src/event src/event
COPY sdk/typescript/src sdk/typescript/src
RUN node bin/bundle-console.mjs && node bin/mend-packages.mjs
RUN npm prune --omit=dev --no-audit --no-fund

# Run: the runtime, the addon and the sources; no compiler, no dev dependency, no root. Debian's libsrtp2 is built on NSS.
FROM debian:bookworm-slim
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates libmpg123-0 libnss3 libopus0 libsrtp2-1 libssl3 libstdc++6 \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --uid 10001 --create-home sidetone \
 && install -d -o sidetone -g sidetone /var/lib/sidetone
WORKDIR /app
COPY --from=build /app/node_modules node_modules
COPY --from=build /app/build/sidetone_media.node build/sidetone_media.node
COPY --from=build /app/build/console build/console
COPY package.json LICENSE ./
COPY bin bin
COPY docs docs
COPY drizzle drizzle
COPY src src
USER sidetone
ENV HTTP_HOST=0.0.0.0 \
    SIP_LISTEN=udp:0.0.0.0:5060,tcp:0.0.0.0:5060 \
    DATA_DIR=/var/lib/sidetone \
    BUN_CONFIG_MAX_HTTP_REQUESTS=4096
VOLUME /var/lib/sidetone
EXPOSE 8080/tcp 5060/udp 5060/tcp 3478/udp 20000-29999/udp
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s \
  CMD ["/app/node_modules/.bin/bun", "-e", "const { HTTP_HOST = '', HTTP_PORT } = process.env; const at = HTTP_HOST.replace('[', '').replace(']', ''); const host = at === '::' ? '::1' : !at || at === '0.0.0.0' ? '127.0.0.1' : at; process.exit((await fetch(`http://${host.includes(':') ? `[${host}]` : host}:${HTTP_PORT || 8080}/healthz`)).ok ? 0 : 1)"]
CMD ["/app/node_modules/.bin/bun", "--no-env-file", "src/main.ts"]
