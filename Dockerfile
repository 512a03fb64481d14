# The image of sinkonce: built from this tree, run as uid 65532 on a read-only root.
#   docker build -t sinkonce .
#   docker run --read-only --cap-drop ALL -e SINKONCE_TARGET=http://target:8080 -v ledger:/var/lib/sinkonce -p 8650:8650 sinkonce
FROM debian:bookworm-slim AS build
RUN apt-get update \
 && apt-get upgrade -y \
 && apt-get install -y --no-install-recommends gcc libc6-dev cmake ninja-build pkg-config libevent-dev \
      libcurl4-openssl-dev libjansson-dev liblmdb-dev libxxhash-dev zlib1g-dev libzstd-dev \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY CMakeLists.txt ./
COPY include include/
COPY store store/
COPY proxy proxy/
RUN cmake -S . -B /build -G Ninja -DCMAKE_BUILD_TYPE=Release -DSINKONCE_TESTS=OFF \
 && ninja -C /build sinkonce \
 && strip --strip-debug -o /sinkonce /build/proxy/sinkonce

FROM debian:bookworm-slim
LABEL org.opencontainers.image.title="sinkonce" \
      org.opencontainers.image.description="A sidecar HTTP proxy that gives Kafka sink connectors an exactly-once effect" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.base.name="debian:bookworm-slim"
# Security fixes of the libraries come with every build: libevent's are part of what keeps a stranger's bytes out.
RUN apt-get update \
 && apt-get upgrade -y \
 && apt-get install -y --no-install-recommends ca-certificates libevent-core-2.1-7 libevent-pthreads-2.1-7 \
      libcurl4 libjansson4 liblmdb0 libxxhash0 zlib1g libzstd1 \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin /var/log/* \
 && install -d -o 65532 -g 65532 -m 0700 /var/lib/sinkonce
COPY --from=build /sinkonce /usr/local/bin/sinkonce
# Beyond loopback inside a container; who may reach it there is the network's to say.
ENV SINKONCE_LISTEN=0.0.0.0:8650 \
    SINKONCE_ADMIN_LISTEN=0.0.0.0:8651
USER 65532:65532
VOLUME /var/lib/sinkonce
EXPOSE 8650 8651
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=5s --timeout=4s --start-period=30s --retries=3 CMD ["/usr/local/bin/sinkonce", "health"]
ENTRYPOINT ["/usr/local/bin/sinkonce"]
