package foreign

import (
	"net"
	"strings"

	"tutti/internal/base/setting"
)

// kafkaPort is Spring's default port of a broker.
const kafkaPort = "9092"

// maestroKafka holds Maestro's Kafka settings for all topics.
type maestroKafka struct {
	// brokers are in the format of a list; without a name when Kafka is turned off.
	brokers setting.EnvVariable
	// stream is set for Maestro 4, whose topics have default names.
	stream bool
	// group, topic, requestGroup and requestTopic have no name when not set.
	group, topic               setting.EnvVariable
	requestGroup, requestTopic setting.EnvVariable
}

func streamName(rest string) string { return withoutUnderscores(streamPrefix) + rest }

func (m *maestro) takeKafka() {
	old, _ := m.take(streamName("KAFKABINDERBROKERS"))
	// Names used during Maestro 5's development; the first is documented.
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
	if brokers.Name == "" || noEvents || given && !on {
		return
	}
	list := setting.SplitList(brokers.Value)
	for i, b := range list {
		list[i] = brokerAddress(b)
	}
	k.brokers = setting.EnvVariable{Name: brokers.Name, Value: strings.Join(list, ",")}
	m.kafka = k
	if k.stream || k.requestTopic.Name != "" {
		fillGiven(m.root, k.brokers, "ingest", "kafka", "brokers")
		fillGiven(m.root, k.requestTopic, "ingest", "kafka", "requestTopic")
		fillGiven(m.root, k.requestGroup, "ingest", "kafka", "group")
	}
}

// brokerAddress returns host:port for a URL or a host.
func brokerAddress(s string) string {
	if _, rest, ok := strings.Cut(s, "://"); ok {
		s = strings.TrimSuffix(rest, "/")
	}
	if !strings.Contains(s, ":") {
		return net.JoinHostPort(s, kafkaPort)
	}
	return s
}

// topic sets a repository's notifications: with Maestro 4 all repositories share one topic, with Maestro 5 each may have its own.
func (m *maestro) topic(r maestroRepository) {
	topic, given := takeFrom(r.variables, "KAFKADOCUMENTUPDATETOPIC")
	if before, ok := takeFrom(r.variables, "KAFKAANALYSISMESSAGETOPIC"); ok && !given {
		topic, given = before, true
	}
	if !given && m.kafka.stream {
		topic = m.kafka.topic
	}
	if m.kafka.brokers.Name == "" || !given && !m.kafka.stream {
		return
	}
	fillGiven(r.node, m.kafka.brokers, "notifications", "kafka", "brokers")
	fillGiven(r.node, topic, "notifications", "kafka", "topic")
	fillGiven(r.node, m.kafka.group, "notifications", "kafka", "group")
}
