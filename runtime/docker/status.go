package docker

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// answerCodes are the statuses by which Docker answers errors, as Docker's own table has them. Any other error is an internal
// one. Of the codes that have one status, the first is what an answer with it is known by.
var answerCodes = []struct {
	of     codes.Code
	answer int
}{
	{codes.InvalidArgument, http.StatusBadRequest},
	{codes.FailedPrecondition, http.StatusBadRequest},
	{codes.OutOfRange, http.StatusBadRequest},
	{codes.NotFound, http.StatusNotFound},
	{codes.AlreadyExists, http.StatusConflict},
	{codes.PermissionDenied, http.StatusForbidden},
	{codes.Unauthenticated, http.StatusUnauthorized},
	{codes.Unimplemented, http.StatusNotImplemented},
	{codes.Unavailable, http.StatusServiceUnavailable},
}

// codeOf is the code by which metrics and the store know an answer of Docker.
func codeOf(answer int) codes.Code {
	for _, row := range answerCodes {
		if row.answer == answer {
			return row.of
		}
	}
	switch {
	case answer < http.StatusBadRequest:
		return codes.OK
	case answer < http.StatusInternalServerError:
		return codes.InvalidArgument
	case answer == http.StatusInternalServerError:
		return codes.Unknown
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
