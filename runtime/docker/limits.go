package docker

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// What of Docker's answers is kept in memory is bounded, since the kernel ends the proxy last. Answers that
// pass to a caller are copied piece by piece and have no bound.
const (
	// maxHead bounds the status and the headers of an answer. Docker's have some hundred bytes.
	maxHead = 1 << 20
	// maxHooked bounds the answer to a request that plugins hook. Docker's have an ID and some warnings, or a message.
	maxHooked = 1 << 20
	// maxAnswer bounds an answer to the proxy itself but for lists, and an event. A container is told in
	// some 10 KiB, or as much more as its labels and environment have.
	maxAnswer = 4 << 20
	// maxList and maxListed bound a list of containers. Each has some 2 KiB.
	maxList   = 32 << 20
	maxListed = 16 << 10
	// maxReading bounds how many answers to the proxy itself are read at a time. As Go's values
	// they can take twenty times as much memory as their text.
	maxReading = 2
)

var errTooLarge = errors.New("the answer is too large")

// readUpTo reads all. The error is errTooLarge if that has more than limit bytes.
func readUpTo(from io.Reader, limit int) ([]byte, error) {
	all, err := io.ReadAll(io.LimitReader(from, int64(limit)+1))
	if err == nil && len(all) > limit {
		err = fmt.Errorf("%w: the limit is %d bytes", errTooLarge, limit)
	}
	return all, err
}

// readWhole reads the answer to a request that plugins hook, before any of it counts.
func readWhole(res *http.Response) error {
	if res.StatusCode == http.StatusSwitchingProtocols {
		return errors.New("it switches to another protocol")
	}
	all, err := readUpTo(res.Body, maxHooked)
	_ = res.Body.Close() // nothing more is wanted of it
	res.Body = io.NopCloser(bytes.NewReader(all))
	return err
}

// decodeList decodes a list of containers, one after the other.
func decodeList(from io.Reader) (all []summary, err error) {
	limited := &io.LimitedReader{R: from, N: maxList}
	dec := json.NewDecoder(limited)
	if _, err := dec.Token(); err != nil {
		return nil, err
	}
	for dec.More() {
		if len(all) == maxListed {
			return nil, fmt.Errorf("%w: the limit is %d containers", errTooLarge, maxListed)
		}
		var s summary
		if err := dec.Decode(&s); err != nil {
			if limited.N <= 0 {
				err = fmt.Errorf("%w: the limit is %d bytes", errTooLarge, maxList)
			}
			return nil, err
		}
		all = append(all, s)
	}
	_, err = dec.Token() // it may have broken off
	return all, err
}
