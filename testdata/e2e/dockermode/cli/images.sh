# Images as streams in both directions.
file=$(mktemp)
run docker run --name images busybox sh -c 'echo made >/made'
run docker commit -m message images committed
run docker save -o "$file" committed
run docker rmi committed | grep -v '^Deleted'
run docker load -i "$file"
run docker run --rm committed cat /made
docker export images | docker import --change 'CMD ["cat", "/made"]' - imported
run docker run --rm imported
run docker tag imported imported:tagged
run docker images --format '{{.Repository}}:{{.Tag}}' imported | sort
run docker history --format '{{.Comment}}' --no-trunc committed
run docker rm images
run docker rmi imported imported:tagged committed | grep -v '^Deleted'
run docker rmi no-such-image
run docker pull no-such-image
