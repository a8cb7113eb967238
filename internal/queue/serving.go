package queue

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"

	"tutti/internal/core"
	"tutti/internal/queue/natsconn"
)

const (
	// servesPrefix starts the subjects on which each process answers for the repositories whose Requests it consumes.
	servesPrefix = "tutti.serves."
	// servesTimeout is how long a process may take to answer. One that is frozen does not, and nothing of its repositories is removed.
	servesTimeout = time.Second
)

// announce has this process answer for the consumer's repository until the consumer is closed.
func (c *Consumer) announce() (err error) {
	if c.class == core.ClassRetries {
		return nil
	}
	c.serves, err = c.queue.conn.NC.Subscribe(servesPrefix+nameToken(c.repository), func(m *nats.Msg) { _ = m.Respond(nil) })
	return natsconn.WrapError("announcing the consumer "+c.label, err)
}

// served are the tokens in the names of consumers, with whether a process answers for the repository.
type served map[string]bool

// by reports whether a process consumes the Requests of the repository with a token.
func (s served) by(ctx context.Context, q *Queue, token string) (bool, error) {
	if known, asked := s[token]; asked {
		return known, nil
	}
	is, err := q.served(ctx, token)
	if err != nil {
		return false, err
	}
	if s[token] = is; is {
		q.log.Warn("another process indexes a repository that is not in this one's configuration; its requests stay in the queue", "consumer", token)
	}
	return is, nil
}

// Served reports whether a process consumes the Requests of a repository: this one, or another one with another configuration.
func (q *Queue) Served(ctx context.Context, repository string) (bool, error) {
	return q.served(ctx, nameToken(repository))
}

func (q *Queue) served(ctx context.Context, token string) (bool, error) {
	within, cancel := context.WithTimeout(ctx, servesTimeout)
	defer cancel()
	_, err := q.conn.NC.RequestWithContext(within, servesPrefix+token, nil)
	if ctx.Err() != nil || err != nil && within.Err() == nil && !errors.Is(err, nats.ErrNoResponders) {
		return false, natsconn.WrapError("calling the processes of another repository", err)
	}
	return !errors.Is(err, nats.ErrNoResponders), nil
}
