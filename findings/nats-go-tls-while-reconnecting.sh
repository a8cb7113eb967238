#!/usr/bin/env bash
# nats.go v1.55.0 with nats-server v2.15.2. Needs Go.
#
# What happens: while a connection is lost and the client tries again, ReconnectErrHandler is called with the error of each attempt that
# finds no server. An attempt whose TLS handshake fails, because the server came back with a certificate that the client does not know or that
# has expired, calls none of the handlers: neither that one, nor ErrorHandler, nor ClosedHandler. The client goes on trying for ever. Only
# LastError says why; who wants to say it in a log must read it now and then while the status is RECONNECTING.
#
# Output seen (EXPECTED):
#   no server: ReconnectErrHandler is called
#   a server with an unknown certificate: 0 calls in 5 s, the connection is RECONNECTING, LastError is a failed verification
#
# Ends with an error if a handler is called.
set -euo pipefail
dir=$(mktemp -d)
trap 'chmod -R u+w "$dir"; rm -rf "$dir"' EXIT
export GOFLAGS=-mod=mod CGO_ENABLED=0
cd "$dir"
cat >main.go <<'GO'
package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"log"
	"math/big"
	"net"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// certificate makes a self-signed certificate of 127.0.0.1.
func certificate() tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "test"}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	check(err)
	leaf, err := x509.ParseCertificate(der)
	check(err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

func start(port int, c tls.Certificate) *server.Server {
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: port, NoLog: true, NoSigs: true, TLS: true, TLSTimeout: 2,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{c}},
	})
	check(err)
	s.Start()
	if !s.ReadyForConnections(10 * time.Second) {
		log.Fatal("the server is not ready")
	}
	return s
}

func main() {
	known, other := certificate(), certificate()
	pool := x509.NewCertPool()
	pool.AddCert(known.Leaf)
	s := start(-1, known)
	port := s.Addr().(*net.TCPAddr).Port
	calls := make(chan string, 1000)
	handler := func(name string) nats.ConnErrHandler {
		return func(_ *nats.Conn, err error) { calls <- fmt.Sprintf("%s: %v", name, err) }
	}
	nc, err := nats.Connect(fmt.Sprintf("tls://127.0.0.1:%d", port), nats.Secure(&tls.Config{RootCAs: pool}), nats.MaxReconnects(-1),
		nats.ReconnectWait(50*time.Millisecond), nats.DisconnectErrHandler(handler("disconnected")), nats.ReconnectErrHandler(handler("reconnect error")),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { calls <- "error: " + err.Error() }),
		nats.ClosedHandler(func(*nats.Conn) { calls <- "closed" }), nats.ReconnectHandler(func(*nats.Conn) { calls <- "reconnected" }))
	check(err)
	s.Shutdown()
	s.WaitForShutdown()
	for !strings.HasPrefix(<-calls, "reconnect error") {
	}
	fmt.Println("no server: ReconnectErrHandler is called")
	s = start(port, other)
	defer s.Shutdown()
	limit := time.Now().Add(20 * time.Second)
	for !strings.Contains(fmt.Sprint(nc.LastError()), "failed to verify certificate") {
		if time.Now().After(limit) {
			log.Fatal("the behaviour has changed: LastError is ", nc.LastError())
		}
		time.Sleep(50 * time.Millisecond)
	}
	for len(calls) > 0 { // of attempts before the server was there
		<-calls
	}
	time.Sleep(5 * time.Second)
	fmt.Printf("a server with an unknown certificate: %d calls in 5 s, the connection is %s, LastError is a failed verification\n", len(calls), nc.Status())
	if len(calls) != 0 || nc.Status() != nats.RECONNECTING {
		log.Fatal("the behaviour has changed")
	}
}
GO
go mod init client 2>/dev/null
go get github.com/nats-io/nats.go@v1.55.0 github.com/nats-io/nats-server/v2@v2.15.2 2>/dev/null
go mod tidy 2>/dev/null
go build -o client .
./client
