# The image of sinkonce: built from this tree, run as uid 65532 on a read-only root.
#   docker build -t sinkonce .                                  on Debian 12; --build-arg DEBIAN=trixie: on Debian 13
#   docker run --read-only --cap-drop ALL -e SINKONCE_TARGET=http://target:8080 -v ledger:/var/lib/sinkonce -p 8650:8650 sinkonce
ARG DEBIAN=bookworm
FROM debian:${DEBIAN}-slim AS build
WORKDIR /src
COPY conf/packages.sh conf/image-root.sh conf/
# Security fixes of the libraries come with every build: libevent's are part of what keeps a stranger's bytes out.
RUN apt-get update \
 && apt-get upgrade -y \
 && apt-get install -y --no-install-recommends ca-certificates \
 && conf/packages.sh build \
 && rm -rf /var/lib/apt/lists/*
COPY CMakeLists.txt ./
COPY conf/package.cmake conf/
COPY conf/debian conf/debian/
COPY include include/
COPY store store/
COPY proxy proxy/
RUN cmake -S . -B /build -G Ninja -DCMAKE_BUILD_TYPE=Release -DSINKONCE_TESTS=OFF \
 && ninja -C /build sinkonce \
 && strip --strip-debug -o /sinkonce /build/proxy/sinkonce \
 && conf/image-root.sh /sinkonce /root-of-image

# For conf/compose only: a target that counts.
FROM build AS sample-target-build
COPY tests/support tests/support/
RUN cmake -S . -B /build -DSINKONCE_SAMPLES=ON \
 && ninja -C /build target \
 && conf/image-root.sh /build/tests/support/target /root-of-target
FROM scratch AS sample-target
COPY --from=sample-target-build /root-of-target /
USER 65532:65532
EXPOSE 9000 9001
ENTRYPOINT ["/usr/local/bin/target", "--address", "0.0.0.0", "--port", "9000", "--control-port", "9001", "--no-journal"]

# Nothing but the program, its libraries and what they read: no shell, no package manager.
FROM scratch
LABEL org.opencontainers.image.title="sinkonce" \
      org.opencontainers.image.description="A sidecar HTTP proxy that gives Kafka sink connectors an exactly-once effect" \
      org.opencontainers.image.version="0.1.0"
COPY --from=build /root-of-image /
# Beyond loopback inside a container; who may reach it there is the network's to say.
ENV SINKONCE_LISTEN=0.0.0.0:8650 \
    SINKONCE_ADMIN_LISTEN=0.0.0.0:8651
USER 65532:65532
VOLUME /var/lib/sinkonce
EXPOSE 8650 8651
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=5s --timeout=4s --start-period=30s --retries=3 CMD ["/usr/local/bin/sinkonce", "health"]
ENTRYPOINT ["/usr/local/bin/sinkonce"]
