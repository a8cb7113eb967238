package queue

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"

	"tutti/internal/core"
	"tutti/internal/queue/cells"
	"tutti/internal/queue/natsconn"
	"tutti/internal/queue/subjects"
	"tutti/internal/queue/together"
)

// message is a Request in flight.
type message struct {
	nc         *nats.Conn
	together   *together.Batches
	subject    string
	reply      string
	request    core.Request
	version    core.Version
	sequence   uint64
	storedAt   time.Time
	deliveries int
	// handOuts stores the hand-out count of the message; nil if there is none.
	handOuts *cells.HandOuts
	log      *slog.Logger
}

var _ core.Message = (*message)(nil)

// Request implements core.Message.
func (m *message) Request() core.Request { return m.request }

// Version implements core.Message.
func (m *message) Version() core.Version { return m.version }

// Deliveries implements core.Message.
func (m *message) Deliveries() int { return m.deliveries }

// Ack implements core.Message. A late Ack of a message that was replaced changes nothing and succeeds.
func (m *message) Ack(ctx context.Context) error {
	defer m.forgetHandOuts(ctx)
	err := sendAck(ctx, m.nc, m.reply, "+ACK")
	if err == nil {
		m.together.Forget(m.subject, m.sequence)
	}
	return natsconn.WrapError("acknowledging a request", err)
}

// Nak implements core.Message.
func (m *message) Nak(delay time.Duration) error {
	if m.nc.IsConnected() {
		m.forgetHandOuts(context.Background())
	}
	return natsconn.WrapError("requeueing a request", m.nc.Publish(m.reply, nakPayload(delay)))
}

// InProgress implements core.Message.
func (m *message) InProgress() error {
	return natsconn.WrapError("extending the ack wait of a request", m.nc.Publish(m.reply, []byte("+WPI")))
}

// forgetHandOuts removes the hand-out count of a message that has ended, or waits without being processed.
func (m *message) forgetHandOuts(ctx context.Context) {
	if m.handOuts == nil {
		return
	}
	if err := m.handOuts.Forget(ctx, m.sequence); err != nil {
		m.log.Debug("hand-out count not removed", "request_id", m.request.ID, "err", err)
	}
}

func nakPayload(delay time.Duration) []byte {
	if delay <= 0 {
		return []byte("-NAK")
	}
	return fmt.Appendf(nil, `-NAK {"delay": %d}`, delay.Nanoseconds())
}

// sendAck sends an acknowledgement and waits for the server's answer. A new leader of the consumer does not answer before it knows the
// delivery.
func sendAck(ctx context.Context, nc *nats.Conn, reply, ack string) error {
	return natsconn.Resend(ctx, func(ctx context.Context) error {
		_, err := nc.RequestWithContext(ctx, reply, []byte(ack))
		return err
	})
}

// decodeRequest decodes a Request, which must be valid and belong to its subject.
func decodeRequest(subject string, data []byte) (core.Request, error) {
	var r core.Request
	if err := json.Unmarshal(data, &r); err != nil {
		return core.Request{}, core.WrapError(core.CodeInvalid, "the request cannot be decoded", err)
	}
	own, err := subjects.OfRequest(r)
	if err != nil {
		return core.Request{}, err
	}
	if own != subject {
		return core.Request{}, core.NewError(core.CodeInvalid, "the request does not belong to its subject")
	}
	return r, nil
}
