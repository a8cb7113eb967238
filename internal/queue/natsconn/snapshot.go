package natsconn

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"strings"
	"time"

	"github.com/klauspost/compress/s2"
	"github.com/nats-io/nats-server/v2/server/archive"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"tutti/internal/core"
)

const (
	// apiMessage, apiRestore start the subjects of JetStream's API by which a message is read and a stream is restored.
	apiMessage = "$JS.API.STREAM.MSG.GET."
	apiRestore = "$JS.API.STREAM.RESTORE."
	// restoreChunk is the number of bytes of one message of a restore.
	restoreChunk = 128 << 10
	// copiedTogether is the number of messages that CopyTo publishes before it waits for their acknowledgements.
	copiedTogether = 256
	// maxPasses bounds the passes over a stream while it is written to. Writes wait as soon as fewer than shortPass sequences are left.
	maxPasses = 5
	shortPass = 200
)

// storedMessage is a message as the server returns it.
type storedMessage struct {
	Subject  string    `json:"subject"`
	Sequence uint64    `json:"seq"`
	Header   []byte    `json:"hdrs"`
	Data     []byte    `json:"data"`
	Time     time.Time `json:"time"`
}

// call makes a request to the server and decodes its JSON response into out, or returns the error in the response.
func (c *Conn) call(ctx context.Context, subject string, body []byte, out any) error {
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	response, err := c.NC.RequestWithContext(ctx, subject, body)
	if err != nil || len(response.Data) == 0 && out == nil {
		return err
	}
	var failed struct {
		Error *jetstream.APIError `json:"error"`
	}
	if err := json.Unmarshal(response.Data, &failed); err != nil {
		return err
	}
	if failed.Error != nil {
		return failed.Error
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(response.Data, out)
}

// readFrom calls each for the messages of a stream from a sequence to at least another one, in their order, and returns the sequence
// after the last.
func (c *Conn) readFrom(ctx context.Context, stream string, from, to uint64, each func(storedMessage) error) (next uint64, err error) {
	for from <= to {
		body, err := json.Marshal(map[string]any{"seq": from, "next_by_subj": ">"})
		if err != nil {
			return from, err
		}
		var found struct {
			Message storedMessage `json:"message"`
		}
		err = c.call(ctx, apiMessage+stream, body, &found)
		if api, ok := errors.AsType[*jetstream.APIError](err); ok && api.ErrorCode == jetstream.JSErrCodeMessageNotFound {
			return to + 1, nil
		}
		if err != nil {
			return from, err
		}
		if err := each(found.Message); err != nil {
			return from, err
		}
		from = found.Message.Sequence + 1
	}
	return from, nil
}

// readAll calls each for every message of a stream in their order, up to the end of the stream when it returns: a message that was
// replaced or removed before it was read has been followed by others, which are read too. What is written meanwhile is read in further
// passes; writes wait during the last one.
func (c *Conn) readAll(ctx context.Context, s jetstream.Stream, each func(storedMessage) error) error {
	next := uint64(1)
	for pass := range maxPasses {
		info, err := s.Info(ctx)
		if err != nil {
			return err
		}
		last := info.State.LastSeq
		if pass > 0 && last-min(last, next) < shortPass {
			break
		}
		if next, err = c.readFrom(ctx, info.Config.Name, next, last, each); err != nil {
			return err
		}
	}
	c.writes.Lock()
	defer c.writes.Unlock()
	_, err := c.readFrom(ctx, s.CachedInfo().Config.Name, next, math.MaxInt64, each)
	return err
}

// Snapshot writes the messages of a stream in the format that nats-server restores, with their sequences and times. Unlike the server's
// own snapshot, which ends at the last sequence at its start, it contains for each subject the message at the start, a later one, or
// none if the last was removed; and if a message was removed after others were published, it contains those or what followed them.
// It has no consumers. The writes of this Conn must be the only ones, and wait shortly at the end.
func (c *Conn) Snapshot(ctx context.Context, s jetstream.Stream, w io.Writer) error {
	const doing = "reading the queue"
	info, err := s.Info(ctx)
	if err != nil {
		return WrapError(doing, err)
	}
	state := info.State
	state.Consumers = 0
	encoded, err := json.Marshal(state)
	if err != nil {
		return core.WrapError(core.CodeInternal, doing, err)
	}
	compressed := s2.NewWriter(w)
	out := archive.NewWriter(compressed)
	add := func(head archive.Header, parts ...[]byte) error {
		if err := out.WriteHeader(&head); err != nil {
			return err
		}
		for _, part := range parts {
			if _, err := out.Write(part); err != nil {
				return err
			}
		}
		return nil
	}
	err = add(archive.Header{Name: "state.json", PayloadSize: int64(len(encoded)), Timestamp: time.Now().UnixNano()}, encoded)
	if err != nil {
		return err
	}
	var failed error // of w
	err = c.readAll(ctx, s, func(m storedMessage) error {
		failed = add(archive.Header{
			Name: m.Subject, Sequence: m.Sequence, Timestamp: m.Time.UnixNano(),
			HeaderSize: int64(len(m.Header)), PayloadSize: int64(len(m.Data)),
		}, m.Header, m.Data)
		return failed
	})
	switch {
	case failed != nil:
		return failed
	case err != nil:
		return WrapError(doing, err)
	}
	if err := add(archive.Header{}); err != nil { // marks the end
		return err
	}
	return errors.Join(out.Close(), compressed.Close())
}

// CopyTo publishes the messages of a stream on another server, whose stream has the same subjects, in their order, except probes. Their
// sequences and times are new. It returns their number. The writes of this Conn must be the only ones; if they go on, they wait shortly
// at the end.
func (c *Conn) CopyTo(ctx context.Context, s jetstream.Stream, to *Conn) (messages int, err error) {
	messages, err = c.copy(ctx, s, to, s.CachedInfo().Config.Name, func(m storedMessage) (*nats.Msg, []jetstream.PublishOpt, error) {
		if strings.HasPrefix(m.Subject, ProbePrefix) {
			return nil, nil, nil
		}
		msg, err := m.again()
		return msg, nil, err
	})
	return messages, WrapError("copying the queue", err)
}

// copy publishes what change returns for each message of a stream to a stream of a server, in their order; nil for nothing. A conflict with
// a message that is there is no error. It returns the number of messages published.
func (c *Conn) copy(
	ctx context.Context, s jetstream.Stream, to *Conn, stream string,
	change func(storedMessage) (*nats.Msg, []jetstream.PublishOpt, error),
) (messages int, err error) {
	acks := make([]jetstream.PubAckFuture, 0, copiedTogether)
	await := func() error {
		for _, ack := range acks {
			select {
			case <-ack.Ok():
			case err := <-ack.Err():
				if !IsConflict(err) {
					return err
				}
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		acks = acks[:0]
		return nil
	}
	err = c.readAll(ctx, s, func(m storedMessage) error {
		msg, opts, err := change(m)
		if msg == nil || err != nil {
			return err
		}
		ack, err := to.JS.PublishMsgAsync(msg, append(opts, jetstream.WithExpectStream(stream))...)
		if err != nil {
			return err
		}
		messages++
		if acks = append(acks, ack); len(acks) < copiedTogether {
			return nil
		}
		return await()
	})
	if err == nil {
		err = await()
	}
	return messages, err
}

// again returns m as a message to publish in its place, or in the place of an earlier copy.
func (m storedMessage) again() (*nats.Msg, error) {
	msg := &nats.Msg{Subject: m.Subject, Data: m.Data}
	if len(m.Header) > 0 {
		all, err := nats.DecodeHeadersMsg(m.Header)
		if err != nil {
			return nil, err
		}
		for name := range all { // those of JetStream are about the publishing, except the time to live
			if strings.HasPrefix(name, "Nats-") && name != jetstream.MsgTTLHeader {
				delete(all, name)
			}
		}
		msg.Header = all
	}
	return replacing(msg), nil
}

// Restore creates a stream, which must not exist, from what Snapshot wrote.
func (c *Conn) Restore(ctx context.Context, cfg jetstream.StreamConfig, r io.Reader) error {
	const doing = "restoring the queue"
	body, err := json.Marshal(map[string]any{"config": cfg, "state": jetstream.StreamState{}})
	if err != nil {
		return core.WrapError(core.CodeInternal, doing, err)
	}
	var begun struct {
		DeliverSubject string `json:"deliver_subject"`
	}
	if err := c.call(ctx, apiRestore+cfg.Name, body, &begun); err != nil {
		return WrapError(doing, err)
	}
	chunk := make([]byte, restoreChunk)
	for {
		n, err := io.ReadFull(r, chunk)
		if n > 0 {
			if err := c.call(ctx, begun.DeliverSubject, chunk[:n], nil); err != nil {
				return WrapError(doing, err)
			}
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			// An empty message ends the restore; the response says whether it succeeded.
			return WrapError(doing, c.call(ctx, begun.DeliverSubject, nil, &struct{}{}))
		case err != nil:
			return core.WrapError(core.CodeInvalid, doing, err)
		}
	}
}
