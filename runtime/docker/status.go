package docker

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// httpCode returns the status by which Docker answers an error of this code, as Docker's own
// table has it.
func httpCode(code codes.Code) int {
	switch code {
	case codes.OK:
		return http.StatusOK
	case codes.InvalidArgument, codes.FailedPrecondition, codes.OutOfRange:
		return http.StatusBadRequest
	case codes.NotFound:
		return http.StatusNotFound
	case codes.AlreadyExists:
		return http.StatusConflict
	case codes.PermissionDenied:
		return http.StatusForbidden
	case codes.Unauthenticated:
		return http.StatusUnauthorized
	case codes.Unimplemented:
		return http.StatusNotImplemented
	case codes.Unavailable:
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// codeOf is the code by which metrics and the store know an answer of Docker.
func codeOf(answer int) codes.Code {
	switch {
	case answer < http.StatusBadRequest:
		return codes.OK
	case answer == http.StatusInternalServerError:
		return codes.Unknown
	}
	for _, code := range []codes.Code{
		codes.InvalidArgument, codes.NotFound, codes.AlreadyExists, codes.PermissionDenied, codes.Unauthenticated, codes.Unimplemented, codes.Unavailable,
	} {
		if httpCode(code) == answer {
			return code
		}
	}
	if answer < http.StatusInternalServerError {
		return codes.InvalidArgument
	}
	return codes.Unavailable // a gateway's
}

// An answerError is an answer of Docker's that is an error.
type answerError struct {
	code    int // of HTTP
	message string
}

func (e *answerError) Error() string { return fmt.Sprintf("Docker answers %d: %s", e.code, e.message) }

// GRPCStatus has the store and the hooks see the error as CRI has it.
func (e *answerError) GRPCStatus() *status.Status { return status.New(codeOf(e.code), e.message) }

// maxMessage bounds a message of Docker's, which goes into logs.
const maxMessage = 4 << 10

// messageOf returns the message of an error of Docker's, which is JSON.
func messageOf(body []byte) string {
	var e struct{ Message string }
	if json.Unmarshal(body, &e) != nil || e.Message == "" {
		return string(body[:min(len(body), 256)])
	}
	return strings.ToValidUTF8(e.Message[:min(len(e.Message), maxMessage)], "")
}

// refuse answers with an error in Docker's form.
func refuse(w http.ResponseWriter, code int, message string) {
	body, err := json.Marshal(map[string]string{"message": message})
	if err != nil { // no string fails
		body = []byte("{}")
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(append(body, '\n')) // the caller may be gone
}
