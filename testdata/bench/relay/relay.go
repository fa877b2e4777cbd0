// Package relay copies the bytes of one unix socket to another and back. It knows no HTTP/2
// and no gRPC, so that it is the floor of what a proxy in a process of its own can cost.
package relay

import (
	"io"
	"log"
	"net"
)

// Serve relays each connection to the socket at path to a new one to the socket at backend,
// until the process ends.
func Serve(path, backend string) error {
	lis, err := net.Listen("unix", path)
	if err != nil {
		return err
	}
	for {
		conn, err := lis.Accept()
		if err != nil {
			return err
		}
		go relay(conn, backend)
	}
}

// relay owns conn. It ends when both sides have.
func relay(conn net.Conn, backend string) {
	defer conn.Close()
	up, err := net.Dial("unix", backend)
	if err != nil {
		log.Print("relay: ", err)
		return
	}
	defer up.Close()
	back := make(chan struct{})
	go func() {
		defer close(back)
		pump(conn, up)
	}()
	pump(up, conn)
	<-back
}

// pump copies until from ends, and passes the end on.
func pump(to, from net.Conn) {
	if _, err := io.Copy(to, from); err != nil {
		log.Print("relay: ", err)
	}
	to.(*net.UnixConn).CloseWrite()
}
