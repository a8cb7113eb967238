package queue

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"tutti/internal/core"
)

// message is a Request in hand.
type message struct {
	nc         *nats.Conn
	reply      string
	request    core.Request
	version    core.Version
	sequence   uint64
	storedAt   time.Time
	deliveries int
	// jobs keeps the note that the message is in hand; nil where there is none.
	jobs *Jobs
}

var _ core.Message = (*message)(nil)

// Request implements core.Message.
func (m *message) Request() core.Request { return m.request }

// Version implements core.Message.
func (m *message) Version() core.Version { return m.version }

// Deliveries implements core.Message.
func (m *message) Deliveries() int { return m.deliveries }

// Ack implements core.Message. A late Ack of a message that was replaced meanwhile changes nothing and succeeds.
func (m *message) Ack(ctx context.Context) error {
	defer m.forgetHandOuts(ctx)
	return wrapError("acknowledging a request", sendAck(ctx, m.nc, m.reply, "+ACK"))
}

// Nak implements core.Message.
func (m *message) Nak(delay time.Duration) error {
	if m.nc.IsConnected() {
		m.forgetHandOuts(context.Background())
	}
	return wrapError("giving a request back", m.nc.Publish(m.reply, nakPayload(delay)))
}

// InProgress implements core.Message.
func (m *message) InProgress() error {
	return wrapError("keeping a request in hand", m.nc.Publish(m.reply, []byte("+WPI")))
}

func nakPayload(delay time.Duration) []byte {
	if delay <= 0 {
		return []byte("-NAK")
	}
	return fmt.Appendf(nil, `-NAK {"delay": %d}`, delay.Nanoseconds())
}

// sendAck sends word on a message to the server and waits until it was taken.
func sendAck(ctx context.Context, nc *nats.Conn, reply, word string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err := nc.RequestWithContext(ctx, reply, []byte(word))
	return err
}

// decodeRequest reads a Request, which must be valid and belong to the subject that it stands on.
func decodeRequest(subject string, data []byte) (core.Request, error) {
	var r core.Request
	if err := json.Unmarshal(data, &r); err != nil {
		return core.Request{}, core.WrapError(core.CodeInvalid, "the request is not JSON of tutti", err)
	}
	own, err := requestSubject(r)
	if err != nil {
		return core.Request{}, err
	}
	if own != subject {
		return core.Request{}, core.NewError(core.CodeInvalid, "the request stands on another's subject")
	}
	return r, nil
}
