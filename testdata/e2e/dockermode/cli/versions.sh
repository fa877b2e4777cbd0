# The negotiation of versions, an old one, and one that the Engine does not have.
run docker version
run docker info --format '{{.Driver}} {{.CgroupDriver}} {{.ServerVersion}}'
export DOCKER_API_VERSION=1.24
run docker version --format '{{.Client.APIVersion}} {{.Server.APIVersion}}'
printf 'one\n' | run docker run -i --rm busybox cat
run docker run -d --name versions busybox sleep 1000
run docker exec versions sh -c 'exit 3'
run docker update --cpu-shares 300 versions
run docker rm -f versions
export DOCKER_API_VERSION=1.99
run docker ps
run docker run --rm busybox true
