package connection

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"tutti/internal/base/tlsconfig"
	"tutti/internal/core"
)

// tlsAlert is a part of the client's error for a broker that answers with an alert of TLS, which has no type.
const tlsAlert = "tls alert record"

// Failure returns err, of a client with the options of c, as a CodeUnavailable that says why the brokers cannot be used and which key to
// change, if it is due to TLS or SASL; any other error is returned as it is. Its texts contain no secret and no text of a server.
func (c *Connection) Failure(err error) error {
	if err == nil {
		return nil
	}
	if last := c.last.Load(); last != nil && last.err != nil && errors.Is(err, context.DeadlineExceeded) {
		err = last.err
	}
	if known, ok := errors.AsType[*core.Error](err); ok { // of a file, or of the server of tokens
		return &core.Error{Code: core.CodeUnavailable, Message: known.Message, Hint: known.Hint, Err: known.Err}
	}
	message, hint := c.reason(err)
	if message == "" {
		return err
	}
	return &core.Error{Code: core.CodeUnavailable, Message: message, Hint: hint, Err: err}
}

func (c *Connection) reason(err error) (message, hint string) {
	if message, hint = c.refusal(err); message != "" {
		return message, hint
	}
	if _, answered := errors.AsType[*kerr.Error](err); answered {
		return "", ""
	}
	if message, hint = c.mismatch(err); message != "" {
		return message, hint
	}
	files := tlsconfig.Files{Key: c.cfg.Key}
	if c.cfg.TLS != nil {
		files = *c.cfg.TLS
	}
	if reason, hint := files.TLSFailure(err); reason != "" {
		return "a Kafka broker cannot be used: " + reason, hint
	}
	return "", ""
}

// refusal classifies the brokers' errors of SASL.
func (c *Connection) refusal(err error) (message, hint string) {
	switch {
	case errors.Is(err, kerr.SaslAuthenticationFailed) && c.tokens != nil:
		return c.tokens.refused()
	case errors.Is(err, kerr.SaslAuthenticationFailed):
		return "the Kafka brokers refuse the credentials", fmt.Sprintf("check %s and %s", c.key("sasl.username"), c.key("sasl.password"))
	case errors.Is(err, kerr.UnsupportedSaslMechanism):
		return "the Kafka brokers do not offer the SASL mechanism " + c.cfg.SASL.Mechanism, fmt.Sprintf("set %s to one that they offer", c.key("sasl.mechanism"))
	case errors.Is(err, kerr.IllegalSaslState):
		return "the Kafka brokers' port takes no SASL", fmt.Sprintf("remove %s, or set %s to the port of a SASL listener", c.key("sasl.mechanism"), c.key("brokers"))
	}
	return "", ""
}

// mismatch classifies the errors of a port that expects TLS or SASL where the other side does not.
func (c *Connection) mismatch(err error) (message, hint string) {
	_, plain := errors.AsType[tls.RecordHeaderError](err)
	eof, first := errors.AsType[*kgo.ErrFirstReadEOF](err)
	dialling := first && strings.Contains(eof.Error(), "after a dial") // its kind is not exported
	asking := first && strings.Contains(eof.Error(), "SASL is required")
	last := c.last.Load()
	switch {
	case !first && errors.Is(err, io.EOF) && c.cfg.SASL.Mechanism != "" && last != nil && errors.Is(last.err, io.EOF):
		return "a Kafka broker closed the connection while it authenticated this client",
			fmt.Sprintf("check the keys of %s, and the log of the broker", c.key("sasl"))
	case plain, dialling:
		return "the Kafka brokers' port does not speak TLS", fmt.Sprintf("set %s: false, or %s to the port of a TLS listener", c.key("tls"), c.key("brokers"))
	case c.tls == nil && (strings.Contains(err.Error(), tlsAlert) || first && !asking):
		return "the Kafka brokers' port expects TLS", fmt.Sprintf("set %s: true", c.key("tls"))
	case asking && c.cfg.SASL.Mechanism == "":
		return "a Kafka broker closed the connection, as one does that requires SASL", fmt.Sprintf("set %s", c.key("sasl.mechanism"))
	}
	return "", ""
}

// key returns the whole name of a key of the connection.
func (c *Connection) key(name string) string { return keyOf(c.cfg.Key, name) }

func keyOf(of, name string) string {
	if of == "" {
		return name
	}
	return of + "." + name
}
