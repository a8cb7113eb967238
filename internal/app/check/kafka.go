package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"tutti/ingest/kafka/connection"
	"tutti/internal/app/settings"
	"tutti/internal/base/tlsconfig"
	"tutti/internal/config"
	"tutti/internal/core"
)

// kafkaProbe checks the brokers, the topic and the group of one reader. It joins no group and creates no topic.
func kafkaProbe(subject, key string, k config.KafkaTopic) probe {
	return func(ctx context.Context) []Finding {
		answering, silent := dialAll(ctx, subject, k.Brokers)
		if len(answering) == 0 {
			return silent
		}
		// One seed broker is enough to discover the others.
		for i := range silent {
			silent[i].Status = StatusWarn
		}
		to := settings.KafkaConnection(key, k.KafkaConnection)
		to.Brokers = answering
		brokers, err := connection.New(to)
		if err != nil {
			return []Finding{{subject, StatusFail, core.MessageOf(err), core.HintOf(err)}}
		}
		client, err := kgo.NewClient(append(brokers.Options(), kgo.ClientID("tutti-check"), kgo.RequestRetries(0),
			kgo.DisableClientMetrics(), kgo.RequestTimeoutOverhead(remainingTime(ctx)))...)
		if err != nil {
			return []Finding{{subject, StatusFail, "creating the client: " + err.Error(), ""}}
		}
		defer client.Close()
		cluster := kafkaCluster{subject: subject, topic: k, brokers: brokers, admin: kadm.NewClient(client)}
		return append(cluster.inspect(ctx), silent...)
	}
}

// remainingTime returns the time until the deadline of ctx, within the range that the client accepts. The client's connection
// handshake ignores ctx.
func remainingTime(ctx context.Context) time.Duration {
	end, ok := ctx.Deadline()
	if !ok {
		return DefaultTimeout
	}
	return min(max(time.Until(end), 100*time.Millisecond), 15*time.Minute)
}

// dialAll returns the addresses that accept a connection, and a finding for each of the others, in their order.
func dialAll(ctx context.Context, subject string, addresses []string) (answering []string, silent []Finding) {
	found := make([]*Finding, len(addresses))
	var work sync.WaitGroup
	for i, address := range addresses {
		work.Go(func() {
			conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
			if err != nil {
				reason, hint := tlsconfig.Failure(err)
				found[i] = &Finding{subject, StatusFail, "broker " + address + " does not answer: " + reason, hint}
				return
			}
			_ = conn.Close()
		})
	}
	work.Wait()
	for i, f := range found {
		if f == nil {
			answering = append(answering, addresses[i])
		} else {
			silent = append(silent, *f)
		}
	}
	return answering, silent
}

type kafkaCluster struct {
	subject string
	topic   config.KafkaTopic
	brokers *connection.Connection
	admin   *kadm.Client
}

func (c kafkaCluster) inspect(ctx context.Context) []Finding {
	metadata, err := c.admin.Metadata(ctx, c.topic.Topic)
	if refused, ok := errors.AsType[*kadm.AuthError](err); ok {
		return []Finding{c.topicState(kadm.TopicDetail{Err: refused.Err})}
	}
	if err != nil {
		if failure := c.brokers.Failure(err); core.HintOf(failure) != "" {
			return []Finding{{c.subject, StatusFail, core.MessageOf(failure), core.HintOf(failure)}}
		}
		reason, hint := tlsconfig.Failure(err)
		return []Finding{{c.subject, StatusFail, "the brokers do not speak the Kafka protocol: " + reason, cmp.Or(hint, "check that brokers lists the port of a plaintext listener")}}
	}
	found := []Finding{c.topicState(metadata.Topics[c.topic.Topic])}
	// Clients read from the addresses that brokers advertise, whichever address they dialled first.
	var advertised []string
	for _, b := range metadata.Brokers {
		if address := net.JoinHostPort(b.Host, strconv.Itoa(int(b.Port))); !slices.Contains(c.topic.Brokers, address) {
			advertised = append(advertised, address)
		}
	}
	_, silent := dialAll(ctx, c.subject, advertised)
	for _, f := range silent {
		f.Message = "advertised by the cluster: " + f.Message
		f.Hint = "set the brokers' advertised.listeners to addresses that this machine can reach"
		found = append(found, f)
	}
	if found[0].Status == StatusOK {
		found = append(found, c.group(ctx)...)
	}
	return found
}

func (c kafkaCluster) topicState(t kadm.TopicDetail) Finding {
	name := c.topic.Topic
	switch {
	case errors.Is(t.Err, kerr.UnknownTopicOrPartition):
		return Finding{
			c.subject, StatusWarn, fmt.Sprintf("there is no topic %s at %s", name, strings.Join(c.topic.Brokers, ", ")),
			"check the name; tutti reads the topic as soon as it is created",
		}
	case errors.Is(t.Err, kerr.TopicAuthorizationFailed):
		return Finding{c.subject, StatusFail, "not authorized to read topic " + name, "allow Read and Describe on the topic"}
	case t.Err != nil:
		return Finding{c.subject, StatusFail, fmt.Sprintf("topic %s cannot be read: %s", name, t.Err), ""}
	}
	return Finding{c.subject, StatusOK, fmt.Sprintf("topic %s with %s at %s", name,
		count(len(t.Partitions), "partition", "partitions"), strings.Join(c.topic.Brokers, ", ")), ""}
}

// group checks that the group may be used. It need not exist yet.
func (c kafkaCluster) group(ctx context.Context) []Finding {
	groups, err := c.admin.DescribeGroups(ctx, c.topic.Group)
	if err == nil {
		err = groups[c.topic.Group].Err
	}
	if errors.Is(err, kerr.GroupAuthorizationFailed) {
		return []Finding{{c.subject, StatusFail, "not authorized to use group " + c.topic.Group, "allow Read on the group"}}
	}
	return nil
}
