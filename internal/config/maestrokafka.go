package config

import (
	"net"
	"strings"
)

// kafkaPort is what Spring takes for a broker that is written without one.
const kafkaPort = "9092"

// maestroKafka is what Maestro says of Kafka for all topics.
type maestroKafka struct {
	// brokers are as a list of tutti's has them; without a name when Kafka is turned off.
	brokers variable
	// stream tells that they are Maestro 4's, which has its topics without naming them.
	stream bool
	// group, topic, requestGroup and requestTopic are without a name unless they are given.
	group, topic               variable
	requestGroup, requestTopic variable
}

func streamName(rest string) string { return squashed(streamPrefix) + rest }

func (m *maestro) takeKafka() {
	old, _ := m.take(streamName("KAFKABINDERBROKERS"))
	// Three names in the course of Maestro 5's development; the first is that of its documentation.
	brokers, ok := m.takeFirst("KAFKABROKERS", "KAFKASERVER", "KAFKASERVERS")
	if !ok {
		brokers = old
	}
	k := maestroKafka{stream: !ok}
	k.topic, _ = m.take(streamName("BINDINGSSONGINPUTDESTINATION"))
	k.group, _ = m.take(streamName("BINDINGSSONGINPUTGROUP"))
	k.requestTopic, _ = m.take(streamName("BINDINGSINPUTDESTINATION"))
	k.requestGroup, _ = m.take(streamName("BINDINGSINPUTGROUP"))
	if ok {
		k.group, _ = m.take("KAFKAGROUPID")
		k.requestTopic, _ = m.take("KAFKAINDEXREQUESTTOPIC")
		k.requestGroup = k.group
	}
	noEvents, _ := m.switched("DISABLEEVENTINDEXING")
	on, given := m.switched("KAFKAENABLED")
	if brokers.name == "" || noEvents || given && !on {
		return
	}
	list := splitList(brokers.value)
	for i, b := range list {
		list[i] = brokerAddress(b)
	}
	k.brokers = variable{brokers.name, strings.Join(list, ",")}
	m.kafka = k
	if k.stream || k.requestTopic.name != "" {
		fillGiven(m.root, k.brokers, "ingest", "kafka", "brokers")
		fillGiven(m.root, k.requestTopic, "ingest", "kafka", "requestTopic")
		fillGiven(m.root, k.requestGroup, "ingest", "kafka", "group")
	}
}

// brokerAddress returns host:port for what may be a URL or a host alone.
func brokerAddress(s string) string {
	if _, rest, ok := strings.Cut(s, "://"); ok {
		s = strings.TrimSuffix(rest, "/")
	}
	if !strings.Contains(s, ":") {
		return net.JoinHostPort(s, kafkaPort)
	}
	return s
}

// topic returns a repository its notifications: with Maestro 4 all repositories have one topic, with Maestro 5 each may have
// its own.
func (m *maestro) topic(r maestroRepository) {
	topic, given := takeFrom(r.variables, "KAFKADOCUMENTUPDATETOPIC")
	if before, ok := takeFrom(r.variables, "KAFKAANALYSISMESSAGETOPIC"); ok && !given {
		topic, given = before, true
	}
	if !given && m.kafka.stream {
		topic = m.kafka.topic
	}
	if m.kafka.brokers.name == "" || !given && !m.kafka.stream {
		return
	}
	fillGiven(r.node, m.kafka.brokers, "notifications", "kafka", "brokers")
	fillGiven(r.node, topic, "notifications", "kafka", "topic")
	fillGiven(r.node, m.kafka.group, "notifications", "kafka", "group")
}
