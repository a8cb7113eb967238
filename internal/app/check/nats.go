package check

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"encoding/base32"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

// This file implements the part of the NATS client protocol (docs.nats.io, "NATS Client Protocol") that identifies a server.
// The queue package cannot be used: it creates streams and consumes them when it connects.

const (
	natsPort = "4222"
	// natsInbox is the reply subject of the one request; the connection has no other subscription.
	natsInbox = "_INBOX.tutti-check"
	// maxNATSLine and maxNATSAnswer bound what is read.
	maxNATSLine   = 64 << 10
	maxNATSAnswer = 1 << 20
	// natsInfoTime is how long a server may take to send INFO, which it sends unasked. Servers of other protocols, such as
	// HTTP and TLS, wait for the client first; the limit leaves time for the other servers of the cluster.
	natsInfoTime = 3 * time.Second
)

// errNotNATS is returned when the server at the other end does not speak NATS.
var errNotNATS = errors.New("it does not speak NATS")

// natsServer is the INFO of a server and the state of the account.
type natsServer struct {
	Version     string `json:"version"`
	JetStream   bool   `json:"jetstream"`
	Cluster     string `json:"cluster"`
	TLSRequired bool   `json:"tls_required"`
	Nonce       string `json:"nonce"`

	account natsAccount
}

// natsAccount is the answer of $JS.API.INFO.
type natsAccount struct {
	Streams int `json:"streams"`
	Limits  struct {
		MaxStorage int64 `json:"max_storage"`
		MaxStreams int   `json:"max_streams"`
	} `json:"limits"`
	Error *struct {
		Description string `json:"description"`
	} `json:"error"`
}

// natsError is an -ERR of the server.
type natsError struct{ text string }

// Error returns the server's message.
func (r *natsError) Error() string { return "the server reports " + r.text }

// natsKey is the content of a credentials file.
type natsKey struct {
	jwt  string
	seed ed25519.PrivateKey
}

// readCredentials reads a .creds file. Without a file it returns an empty key.
func readCredentials(file string) (natsKey, error) {
	if file == "" {
		return natsKey{}, nil
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return natsKey{}, fmt.Errorf("%s cannot be read: %s", file, cause(err))
	}
	key := natsKey{jwt: section(content, "NATS USER JWT")}
	// A seed is two bytes of kind, 32 of the seed and two of checksum, in base 32.
	seed, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(section(content, "USER NKEY SEED"))
	if key.jwt == "" || err != nil || len(seed) != 2+ed25519.SeedSize+2 {
		return natsKey{}, fmt.Errorf("%s does not contain a user JWT and an NKEY seed", file)
	}
	key.seed = ed25519.NewKeyFromSeed(seed[2 : 2+ed25519.SeedSize])
	return key, nil
}

// section returns the text between the markers of a section of a .creds file.
func section(content []byte, name string) string {
	_, rest, _ := bytes.Cut(content, []byte("-----BEGIN "+name+"-----"))
	text, _, _ := bytes.Cut(rest, []byte("---"))
	return strings.TrimSpace(string(text))
}

// natsConn is a connection that is read line by line.
type natsConn struct {
	net.Conn
	in *bufio.Reader
}

// inspectNATS connects to one server and reads the account's JetStream state. An -ERR of the server is returned as a
// *natsError.
func inspectNATS(ctx context.Context, address string, key natsKey) (natsServer, error) {
	u, err := url.Parse(address)
	if err != nil {
		return natsServer{}, errors.New("the address is not a URL")
	}
	if u.Scheme == "ws" || u.Scheme == "wss" {
		return natsServer{}, errors.New("tutti check does not support WebSocket addresses; use nats:// or tls:// here")
	}
	port := u.Port()
	if port == "" {
		port = natsPort
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
	if err != nil {
		return natsServer{}, err
	}
	defer func() { _ = conn.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	c := &natsConn{conn, bufio.NewReaderSize(conn, maxNATSLine)}
	var server natsServer
	if err := c.info(&server, min(natsInfoTime, remainingTime(ctx)/3)); err != nil {
		return server, err
	}
	if u.Scheme == "tls" || server.TLSRequired {
		secure := tls.Client(conn, &tls.Config{ServerName: u.Hostname(), MinVersion: tls.VersionTLS12})
		if err := secure.HandshakeContext(ctx); err != nil {
			return server, err
		}
		c = &natsConn{secure, bufio.NewReaderSize(secure, maxNATSLine)}
	}
	if err := c.connect(u, server.Nonce, key); err != nil {
		return server, err
	}
	if !server.JetStream {
		return server, nil
	}
	return server, c.accountInfo(&server.account)
}

func (c *natsConn) line() (string, error) {
	line, err := c.in.ReadSlice('\n')
	if err != nil {
		return "", err
	}
	text := strings.TrimSpace(string(line))
	if refused, ok := strings.CutPrefix(text, "-ERR"); ok {
		return "", &natsError{strings.TrimSpace(refused)}
	}
	return text, nil
}

// info reads INFO, the first line that a server sends.
func (c *natsConn) info(server *natsServer, within time.Duration) error {
	late := time.AfterFunc(within, func() { _ = c.Close() })
	line, err := c.line()
	late.Stop()
	if refused, ok := errors.AsType[*natsError](err); ok {
		return refused
	}
	text, ok := strings.CutPrefix(line, "INFO ")
	if err != nil || !ok || json.Unmarshal([]byte(text), server) != nil {
		return errNotNATS
	}
	return nil
}

// connect sends CONNECT with the credentials and waits until the server accepts or rejects them.
func (c *natsConn) connect(u *url.URL, nonce string, key natsKey) error {
	hello := map[string]any{"verbose": false, "pedantic": false, "lang": "go", "version": "1", "name": "tutti check", "protocol": 1}
	if password, both := u.User.Password(); both {
		hello["user"], hello["pass"] = u.User.Username(), password
	} else if u.User != nil {
		hello["auth_token"] = u.User.Username()
	}
	if key.jwt != "" {
		hello["jwt"] = key.jwt
		hello["sig"] = base64.RawURLEncoding.EncodeToString(ed25519.Sign(key.seed, []byte(nonce)))
	}
	text, err := json.Marshal(hello)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(c, "CONNECT %s\r\nPING\r\n", text); err != nil {
		return err
	}
	for {
		line, err := c.line()
		if err != nil || line == "PONG" {
			return err
		}
	}
}

// accountInfo reads the account's JetStream limits and usage.
func (c *natsConn) accountInfo(account *natsAccount) error {
	if _, err := fmt.Fprintf(c, "SUB %s 1\r\nPUB $JS.API.INFO %s 0\r\n\r\n", natsInbox, natsInbox); err != nil {
		return err
	}
	for {
		line, err := c.line()
		if err != nil {
			return err
		}
		if line == "PING" {
			if _, err := io.WriteString(c, "PONG\r\n"); err != nil {
				return err
			}
		}
		fields := strings.Fields(line)
		if len(fields) < 4 || fields[0] != "MSG" {
			continue
		}
		size, err := strconv.Atoi(fields[len(fields)-1])
		if err != nil || size < 0 || size > maxNATSAnswer {
			return errors.New("its answer is larger than the limit")
		}
		body := make([]byte, size)
		if _, err := io.ReadFull(c.in, body); err != nil {
			return err
		}
		return json.Unmarshal(body, account)
	}
}
