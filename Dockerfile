# The image holds one static binary and the licences, has no shell, and runs as an unprivileged user.
#
#   docker build --build-arg VERSION=0.1.0 --build-arg COMMIT="$(git rev-parse HEAD)" -t paddock .
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=
ARG COMMIT=
RUN CGO_ENABLED=0 go build -trimpath -buildvcs=false \
    -ldflags "-s -w -X main.release=${VERSION} -X main.commit=${COMMIT}" \
    -o /paddock ./cmd/paddock

FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /paddock /paddock
COPY LICENSE THIRD_PARTY_LICENSES /licenses/
# nonroot, as a number: Kubernetes' runAsNonRoot cannot look up names.
USER 65532:65532
EXPOSE 8080
HEALTHCHECK --interval=5s --timeout=4s --start-period=30s CMD ["/paddock", "healthcheck"]
ENTRYPOINT ["/paddock"]
CMD ["serve"]
