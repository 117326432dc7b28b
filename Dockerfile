# The image that the manifests in config/ run: move-hook alone, as a numeric user
# who is not root, on nothing but CA certificates. `make image` builds it. It holds
# no clusterctl: post needs none, and `move` has the library linked in.

# A builder without BuildKit does not set these; `make image` gives them.
ARG BUILDPLATFORM

# Compiled on the machine's own platform for any other.
FROM --platform=$BUILDPLATFORM golang:1.26.8 AS build
WORKDIR /src
ARG GOPROXY
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG TARGETOS
ARG TARGETARCH
ARG VERSION
ARG SOURCE_DATE_EPOCH=0
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
    go build -trimpath -ldflags "-s -w -buildid= -X main.version=$VERSION" -o /move-hook ./cmd/move-hook \
 && touch --date="@$SOURCE_DATE_EPOCH" /move-hook

FROM gcr.io/distroless/static-debian13:nonroot
ARG VERSION
ARG REVISION
LABEL org.opencontainers.image.title="move-hook" \
      org.opencontainers.image.description="Makes the pivot of Cluster API clusters between management clusters safe" \
      org.opencontainers.image.source="https://github.com/move-hook/move-hook" \
      org.opencontainers.image.documentation="https://github.com/move-hook/move-hook/blob/main/docs/pivot.md" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION"
COPY --from=build /move-hook /move-hook
USER 65532:65532
ENTRYPOINT ["/move-hook"]
