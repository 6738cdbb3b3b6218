# The image holds one static binary and the licences, has no shell, and runs as an unprivileged user.
#
#   docker build --build-arg VERSION=1.2.3 --build-arg COMMIT="$(git rev-parse HEAD)" -t paddock .
#
# The compiler always runs on the architecture of the builder, never under emulation. An image for another one needs
# BuildKit, which says for which: docker buildx build --platform linux/arm64 -t paddock .
# The release and the commit, if the builder knows them: without them the version has the suffix -devel.
ARG VERSION=
ARG COMMIT=

# The builder before BuildKit sets no BUILDPLATFORM; linux alone is the architecture that it runs on.
FROM --platform=${BUILDPLATFORM:-linux} golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION
ARG COMMIT
# Set by BuildKit; without a value Go compiles for the architecture that it runs on.
ARG TARGETOS
ARG TARGETARCH
RUN CGO_ENABLED=0 GOOS=${TARGETOS} GOARCH=${TARGETARCH} go build -trimpath -buildvcs=false \
    -ldflags "-s -w -X main.release=${VERSION} -X main.commit=${COMMIT}" \
    -o /paddock ./cmd/paddock

FROM gcr.io/distroless/static-debian12:nonroot
ARG VERSION
ARG COMMIT
LABEL org.opencontainers.image.title="Paddock" \
      org.opencontainers.image.description="A distributed lock service: leases with fencing tokens, over HTTP, on PostgreSQL." \
      org.opencontainers.image.source="https://github.com/paddock-lock/paddock" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION:-devel}" \
      org.opencontainers.image.revision="${COMMIT:-unknown}"
COPY --from=build /paddock /paddock
COPY LICENSE THIRD_PARTY_LICENSES /licenses/
# nonroot, as a number: Kubernetes' runAsNonRoot cannot look up names.
USER 65532:65532
EXPOSE 8080
HEALTHCHECK --interval=5s --timeout=4s --start-period=30s CMD ["/paddock", "healthcheck"]
ENTRYPOINT ["/paddock"]
CMD ["serve"]
