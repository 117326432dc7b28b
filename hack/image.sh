#!/usr/bin/env bash
# The container image: `make image`, `make test-image`, and the image of `make test-kind`.
#
#   IMAGE=name:tag VERSION=v0.1.0 [PLATFORMS=linux/amd64,linux/arm64] [OUTPUT=--push] hack/image.sh engine|build|test
#
# One platform goes into the engine, several into an archive, unless OUTPUT says else.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() {
  echo "$*" >&2
  exit 1
}

# engine: without one there is nothing to be had, and nothing is pretended.
engine() {
  docker version --format '{{.Server.Version}}' >/dev/null 2>&1 ||
    fail "no Docker engine answers: install and start one (apt-get install docker.io) or set DOCKER_HOST to one, then run this again"
}

build() {
  local platforms=${PLATFORMS:-linux/$(go env GOARCH)} output=${OUTPUT:---load}
  local args=(
    --tag "$IMAGE" --platform "$platforms"
    --build-arg "VERSION=$VERSION"
    --build-arg "REVISION=$(git rev-parse HEAD 2>/dev/null || echo unknown)"
    --build-arg "SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || echo 0)"
    --build-arg "GOPROXY=$(go env GOPROXY)"
  )
  if docker buildx version >/dev/null 2>&1; then
    if [[ $platforms == *,* && -z ${OUTPUT:-} ]]; then
      mkdir -p bin
      output=--output=type=oci,dest=bin/image.tar
    fi
    docker buildx build "${args[@]}" "$output" .
    return
  fi
  # The classic builder: one platform, into the engine, and it must be told what BuildKit knows.
  [[ $platforms != *,* && $output == --load ]] ||
    fail "PLATFORMS=$platforms OUTPUT=$output needs docker buildx: install it (apt-get install docker-buildx)"
  DOCKER_BUILDKIT=0 docker build "${args[@]}" \
    --build-arg "BUILDPLATFORM=linux/$(docker version --format '{{.Server.Arch}}')" \
    --build-arg "TARGETOS=${platforms%%/*}" --build-arg "TARGETARCH=${platforms#*/}" .
}

# run runs the image with as little as the manifests in config/ give it.
run() {
  docker run --rm --read-only --network none --cap-drop ALL --security-opt no-new-privileges "$IMAGE" "$@"
}

# try demands of the image what the manifests demand.
try() {
  local user said
  user=$(docker image inspect --format '{{.Config.User}}' "$IMAGE")
  [[ $user =~ ^[1-9][0-9]*(:[1-9][0-9]*)?$ ]] || fail "$IMAGE runs as user '$user': the restricted Pod Security needs a number that is not 0"
  said=$(run --version)
  [[ $said == "move-hook $VERSION"* ]] || fail "$IMAGE says '$said' and not that it is version $VERSION"
  said=$(run post --help)
  [[ $said == *--all-namespaces* ]] || fail "$IMAGE does not explain 'post'"
  echo "$IMAGE runs as $user with a read-only root"
}

case ${1:-} in
engine) engine ;;
build)
  engine
  build
  ;;
test)
  unset PLATFORMS OUTPUT # it has to run here
  engine
  build
  try
  ;;
*) fail "usage: hack/image.sh engine|build|test" ;;
esac
