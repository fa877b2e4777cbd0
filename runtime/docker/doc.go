// Package docker serves the Docker Engine API on one socket by requests on another, as package
// proxy does for CRI.
//
// Each request passes as it comes, with its streams and upgraded connections. The requests that
// make, start, stop, update and remove containers are shown to the same routes as calls of CRI:
// the package makes a CRI message of the request, and edits the request's JSON where plugins have
// changed the message. What the store asks of a container runtime, it answers from Docker.
//
// What a pod is in Docker is dockershim's convention: a pod is the container with the label
// io.kubernetes.docker.type=podsandbox, and its containers name it by another label.
package docker
