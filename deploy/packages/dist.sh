#!/bin/sh
# Makes what a release has, below the directory OUT (dist). Two runs on one commit give the
# same bytes, in whichever directory and by whichever user.
#
#   ARCHES             of the programs and packages (amd64 arm64)
#   IMAGE              name of the container image, without a tag (localhost/wasmproxy)
#   VERSION            without v; by default that of the commit's tag, else 0.0.0-dev.DATE.COMMIT
#   SOURCE_DATE_EPOCH  time of all files; by default that of the commit
set -eu
cd "$(dirname "$0")/../.."
OUT=${OUT:-dist}
ARCHES=${ARCHES:-amd64 arm64}
IMAGE=${IMAGE:-localhost/wasmproxy}
export LC_ALL=C TZ=UTC CGO_ENABLED=0
umask 022
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH
if [ -z "${VERSION:-}" ]; then
	tag=$(git describe --tags --exact-match --match 'v[0-9]*' 2>/dev/null || true)
	VERSION=${tag#v}
	VERSION=${VERSION:-0.0.0-dev.$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y%m%d).g$(git rev-parse --short=12 HEAD)}
fi
case "$OUT" in
/*) ;;
*) OUT=$PWD/$OUT ;;
esac
rm -rf "$OUT"
mkdir -p "$OUT"
PAGES=$(mktemp -d)
trap 'rm -rf "$PAGES"' EXIT
export VERSION OUT PAGES

go test -count=1 ./cmd/wasmproxy -run '^TestPages$' -pages "$PAGES" >/dev/null
gzip -9n "$PAGES"/man/*.1
{ # the newest section of CHANGELOG.md, as Debian writes it
	echo "wasmproxy ($(echo "$VERSION" | sed 's/-/~/')) unstable; urgency=medium"
	echo
	awk '/^## /{ n++ } n == 1 && /^(- |  )/' CHANGELOG.md | fold -s -w 74 | sed -e 's/ *$//' -e '/^- /!s/^ */    /' -e 's/^- /  * /'
	echo
	echo " -- The wasmproxy authors <wasmproxy@users.noreply.github.com>  $(date -u -R -d "@$SOURCE_DATE_EPOCH")"
} | gzip -9n >"$PAGES/changelog.gz"
set --
for ARCH in $ARCHES; do
	export ARCH
	program=$OUT/wasmproxy-linux-$ARCH
	set -- "$@" "$program"
	GOOS=linux GOARCH=$ARCH MAKEFLAGS='' make -s build BIN="$program" LDFLAGS="-X main.version=v$VERSION"
	(cd testdata/tools && go run ./sbom "v$VERSION" "$program") >"$program.spdx.json"
	for name in wasmproxy-fleet wasmproxy-fleet-agent wasmproxy-fleet-verify; do
		program=$OUT/$name-linux-$ARCH
		set -- "$@" "$program"
		GOOS=linux GOARCH=$ARCH go build -C fleet -trimpath -buildvcs=false -o "$program" \
			-ldflags "-s -w -X github.com/wasmproxy/wasmproxy/fleet/process.Version=v$VERSION" "./cmd/$name"
		(cd testdata/tools && go run ./sbom "v$VERSION" "$program") >"$program.spdx.json"
	done
	for packager in deb rpm; do
		go tool -modfile=testdata/tools/go.mod nfpm package --config deploy/packages/nfpm.yaml --packager $packager --target "$OUT"
	done
done
(cd testdata/tools && go run ./image "$IMAGE:$VERSION" "$OUT/wasmproxy-image.tar" "$@")
mkdir "$PAGES/manifests"
cp -r deploy/kustomize "$PAGES/manifests/wasmproxy-kustomize"
cp -rL deploy/helm "$PAGES/manifests/wasmproxy-fleet" # the files to which it has links
sed -i "s|0\.0\.0-dev|$VERSION|" "$PAGES/manifests/wasmproxy-fleet/Chart.yaml"
grep -rl localhost/wasmproxy:dev "$PAGES/manifests" | xargs sed -i "s|localhost/wasmproxy:dev|$IMAGE:$VERSION|"
tar --sort=name --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --mtime="@$SOURCE_DATE_EPOCH" -C "$PAGES/manifests" -cf - wasmproxy-kustomize | gzip -9n >"$OUT/wasmproxy-kustomize.tar.gz"
tar --sort=name --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --mtime="@$SOURCE_DATE_EPOCH" -C "$PAGES/manifests" -cf - wasmproxy-fleet | gzip -9n >"$OUT/wasmproxy-helm.tgz"
mkdir "$PAGES/wasmproxy-docs"
cp -r docs deploy/systemd deploy/prometheus CHANGELOG.md LICENSE "$PAGES/wasmproxy-docs"
rm "$PAGES"/wasmproxy-docs/systemd/*.go "$PAGES"/wasmproxy-docs/prometheus/*_test.yaml
tar --sort=name --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --mtime="@$SOURCE_DATE_EPOCH" -C "$PAGES" -cf - wasmproxy-docs | gzip -9n >"$OUT/wasmproxy-docs.tar.gz"
tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" -C "$PAGES" -cf - man completions | gzip -9n >"$OUT/wasmproxy-man-completions.tar.gz"
(cd "$OUT" && sha256sum -- * >SHA256SUMS)
echo "wasmproxy $VERSION is in $OUT:"
ls "$OUT"
