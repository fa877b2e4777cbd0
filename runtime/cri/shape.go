package cri

import runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

// A Shape says how many messages a method carries.
type Shape uint8

const (
	Stream Shape = iota // any number, either way
	Unary               // one request, one response
)

// Shapes returns the shape of every method of every CRI service that this build
// knows, by its name on the wire. A method that is missing came later than the
// build and may have any shape: Stream, the zero Shape, fits them all.
func Shapes() map[string]Shape {
	shapes := make(map[string]Shape)
	services := runtimeapi.File_staging_src_k8s_io_cri_api_pkg_apis_runtime_v1_api_proto.Services()
	for i := range services.Len() {
		methods := services.Get(i).Methods()
		for j := range methods.Len() {
			m, shape := methods.Get(j), Unary
			if m.IsStreamingClient() || m.IsStreamingServer() {
				shape = Stream
			}
			shapes["/"+string(m.Parent().FullName())+"/"+string(m.Name())] = shape
		}
	}
	return shapes
}
