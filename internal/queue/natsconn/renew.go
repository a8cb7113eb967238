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
	// metadataComplete marks a copy that has every message, metadataRenewing a stream whose messages are only in its copy.
	metadataComplete = "tutti.complete"
	metadataRenewing = "tutti.renewing"
)

// Renew rewrites the stream of cfg if an earlier version of tutti has set it up with a limit of one message for each subject, and sets cfg.
// The server does not store what such a limit removes: after a crash it brings back the messages whose newer ones are gone, also after the
// limit has ended, as long as its files have them. So the messages are copied to another stream and back, and all files are deleted in
// between. change may add headers to the copy of a message with a sequence. After a crash it continues at the next start; a stream that
// cannot be copied stays as it is, which is logged. The stream must not be written to by other processes.
func (c *Conn) Renew(ctx context.Context, cfg jetstream.StreamConfig, change func(copied *nats.Msg, sequence uint64)) error {
	return WrapError("renewing the stream "+cfg.Name, c.renew(ctx, cfg, change))
}

func (c *Conn) renew(ctx context.Context, cfg jetstream.StreamConfig, change func(*nats.Msg, uint64)) error {
	var stream jetstream.Stream
	err := c.RetryStart(ctx, func(ctx context.Context) (err error) {
		stream, err = c.JS.Stream(ctx, cfg.Name)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			stream, err = nil, nil
		}
		return WrapError("reading the stream "+cfg.Name, withoutJetStream(ctx, c.JS, err))
	})
	if err != nil || stream == nil {
		return err
	}
	before := stream.CachedInfo().Config
	limited := before.MaxMsgsPerSubject == 1
	if !limited && before.Metadata[metadataRenewing] == "" {
		return nil
	}
	saved, err := c.copyOf(ctx, stream)
	if limited && err == nil && (saved == nil || saved.CachedInfo().Config.Metadata[metadataComplete] == "") {
		saved, err = c.saveCopy(ctx, stream, change)
	}
	if limited && err != nil {
		c.Log.Warn("a stream of an earlier version cannot be renewed: what was removed from it may come back after a crash", "stream", cfg.Name, "err", err)
		return nil
	}
	if err != nil || saved == nil {
		return err
	}
	if limited {
		if err := stream.Purge(ctx); err != nil {
			return err
		}
		cfg.Metadata = map[string]string{metadataRenewing: "true"}
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

// copyOf returns the copy of a stream, nil if there is none.
func (c *Conn) copyOf(ctx context.Context, stream jetstream.Stream) (jetstream.Stream, error) {
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	saved, err := c.JS.Stream(ctx, stream.CachedInfo().Config.Name+copySuffix)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, nil
	}
	return saved, err
}

// saveCopy copies a stream, except its probe, to a new one and marks that as complete.
func (c *Conn) saveCopy(ctx context.Context, stream jetstream.Stream, change func(*nats.Msg, uint64)) (jetstream.Stream, error) {
	from := stream.CachedInfo().Config
	cfg := jetstream.StreamConfig{
		Name: from.Name + copySuffix, Description: "Copy of " + from.Name + " while it is renewed", Subjects: []string{copyPrefix + ">"},
		Storage: from.Storage, Replicas: from.Replicas, AllowRollup: true, AllowMsgTTL: from.AllowMsgTTL,
	}
	creating, cancel := context.WithTimeout(ctx, CallTimeout) // credentials may not allow it: then the server does not answer
	defer cancel()
	if err := c.JS.DeleteStream(creating, cfg.Name); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, err
	}
	saved, err := c.JS.CreateStream(creating, cfg)
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
