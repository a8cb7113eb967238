package natsconn

import (
	"context"
	"errors"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// copySuffix ends the name of the stream that Renew copies a stream to, copyPrefix starts its subjects.
	copySuffix = "_COPY"
	copyPrefix = "tutti.copy."
	// metadataComplete marks a copy that has every message.
	metadataComplete = "tutti.complete"
)

// Renew rewrites the stream of cfg if an earlier version of tutti has set it up with a limit of one message for each subject, and sets cfg.
// The server does not store what such a limit removes: after a crash it brings back the messages whose newer ones are gone, also after the
// limit has ended, as long as its files have them. So the messages are copied to another stream and back, and all files are deleted in
// between. change may add headers to the copy of a message with a sequence. After a crash it continues at the next start. The stream must
// not be written to by other processes.
func (c *Conn) Renew(ctx context.Context, cfg jetstream.StreamConfig, change func(copied *nats.Msg, sequence uint64)) error {
	err := c.renew(ctx, cfg, change)
	return WrapError("renewing the stream "+cfg.Name, err)
}

func (c *Conn) renew(ctx context.Context, cfg jetstream.StreamConfig, change func(*nats.Msg, uint64)) error {
	stream, err := c.JS.Stream(ctx, cfg.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	limited := stream.CachedInfo().Config.MaxMsgsPerSubject == 1
	saved, err := c.JS.Stream(ctx, cfg.Name+copySuffix)
	complete := err == nil && saved.CachedInfo().Config.Metadata[metadataComplete] != ""
	switch {
	case err != nil && !errors.Is(err, jetstream.ErrStreamNotFound):
		return err
	case !limited && !complete:
		return nil
	}
	if limited {
		if !complete {
			if saved, err = c.saveCopy(ctx, stream, change); err != nil {
				return err
			}
		}
		if err := stream.Purge(ctx); err != nil {
			return err
		}
		if _, err := c.createStream(ctx, cfg); err != nil {
			return err
		}
	}
	messages, err := c.copy(ctx, saved, c, cfg.Name, func(m storedMessage) (*nats.Msg, []jetstream.PublishOpt, error) {
		msg, err := m.again()
		if err == nil {
			msg.Subject = strings.TrimPrefix(m.Subject, copyPrefix)
		}
		return msg, []jetstream.PublishOpt{jetstream.WithExpectLastSequencePerSubject(0)}, err
	})
	if err != nil {
		return err
	}
	c.Log.Info("stream of an earlier version renewed", "stream", cfg.Name, "messages", messages)
	return c.JS.DeleteStream(ctx, saved.CachedInfo().Config.Name)
}

// saveCopy copies a stream, except its probe, to a new one and marks that as complete.
func (c *Conn) saveCopy(ctx context.Context, stream jetstream.Stream, change func(*nats.Msg, uint64)) (jetstream.Stream, error) {
	from := stream.CachedInfo().Config
	cfg := jetstream.StreamConfig{
		Name: from.Name + copySuffix, Description: "Copy of " + from.Name + " while it is renewed", Subjects: []string{copyPrefix + ">"},
		Storage: from.Storage, Replicas: from.Replicas, AllowRollup: true, AllowMsgTTL: from.AllowMsgTTL,
	}
	if err := c.JS.DeleteStream(ctx, cfg.Name); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, err
	}
	saved, err := c.JS.CreateStream(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if _, err := c.copy(ctx, stream, c, cfg.Name, func(m storedMessage) (*nats.Msg, []jetstream.PublishOpt, error) {
		if strings.HasPrefix(m.Subject, ProbePrefix) {
			return nil, nil, nil
		}
		msg, err := m.again()
		if err == nil {
			msg.Subject = copyPrefix + m.Subject
			change(msg, m.Sequence)
		}
		return msg, nil, err
	}); err != nil {
		return nil, err
	}
	cfg.Metadata = map[string]string{metadataComplete: "true"}
	if _, err := c.JS.UpdateStream(ctx, cfg); err != nil {
		return nil, err
	}
	return saved, nil
}
