package migrate

import "tutti/internal/config"

// maestro is the table of Maestro 4 and 5; both spellings of a name are the same without underscores.
func maestro() product {
	const (
		nodes     = "index.url"
		documents = "repositories[#].documents"
		events    = "repositories[#].notifications.kafka."
		requests  = "ingest.kafka."
		letters   = "tutti keeps what it cannot index as dead letters: tutti dead-letters list"
		retried   = "tutti retries until it succeeds"
	)
	return product{
		name:  "Maestro",
		marks: []string{"MAESTRO_REPOSITORIES_", "MAESTRO_ELASTICSEARCH_"},
		files: "application.yml, application.properties or .env",
		read:  (*config.Foreign).Maestro,
		keys: []key{
			{name: "MAESTRO_REPOSITORIES_#_CODE", to: "repositories[#].code"},
			{name: "MAESTRO_REPOSITORIES_#_NAME", to: "repositories[#].name"},
			{name: "MAESTRO_REPOSITORIES_#_TYPE", to: "repositories[#].type"},
			{name: "MAESTRO_REPOSITORIES_#_BASE_URL", to: "repositories[#].url"},
			{name: "MAESTRO_REPOSITORIES_#_URL", to: "repositories[#].url"},
			{name: "MAESTRO_REPOSITORIES_#_INDEX_NAME", to: "repositories[#].indexName"},
			{name: "MAESTRO_REPOSITORIES_#_PAGINATION_SIZE", to: "repositories[#].pageSize"},
			{name: "MAESTRO_REPOSITORIES_#_SONG_ORGANIZATION", to: "repositories[#].organization"},
			{name: "MAESTRO_REPOSITORIES_#_ORGANIZATION", to: "repositories[#].organization"},
			{name: "MAESTRO_REPOSITORIES_#_SONG_COUNTRY", to: "repositories[#].country"},
			{name: "MAESTRO_REPOSITORIES_#_COUNTRY", to: "repositories[#].country"},
			{name: "MAESTRO_REPOSITORIES_#_SONG_INDEXING_MODE", to: documents},
			{name: "MAESTRO_REPOSITORIES_#_SONG_ANALYSIS_CENTRIC_ENABLED", to: documents},
			{name: "MAESTRO_REPOSITORIES_#_SONG_INDEXABLE_STUDY_STATES", to: "repositories[#].song.states"},
			{name: "MAESTRO_REPOSITORIES_#_LYRIC_CATEGORY_ID", to: "repositories[#].lyric.categoryId"},
			{name: "MAESTRO_REPOSITORIES_#_LYRIC_VALID_DATA_ONLY", to: "repositories[#].lyric.validOnly"},
			{name: "MAESTRO_REPOSITORIES_#_KAFKA_DOCUMENT_UPDATE_TOPIC", to: events + "topic"},
			{name: "MAESTRO_REPOSITORIES_#_KAFKA_ANALYSIS_MESSAGE_TOPIC", to: events + "topic"},
			{name: "MAESTRO_REPOSITORIES_#_KAFKA_DOCUMENT_UPDATE_DLQ", note: letters},
			{name: "MAESTRO_REPOSITORIES_#_KAFKA_ANALYSIS_MESSAGE_DLQ", note: letters},
			{name: "MAESTRO_REPOSITORIES_#_STORAGE_TYPE", note: "documents have the repository's type instead"},

			{name: "MAESTRO_ELASTICSEARCH_NODES", to: nodes},
			{name: "MAESTRO_ELASTICSEARCH_CLUSTER_NODES", to: nodes},
			{name: "MAESTRO_ELASTICSEARCH_CLUSTER_NODES_#", to: nodes, note: "part of index.url"},
			{name: "MAESTRO_ELASTICSEARCH_PATH_PREFIX", to: nodes, note: "part of index.url"},
			{name: "MAESTRO_ELASTICSEARCH_CLIENT_BASICAUTH_ENABLED", to: "index.username", note: "decides whether index.username and index.password are set"},
			{name: "MAESTRO_ELASTICSEARCH_CLIENT_BASICAUTH_USER", to: "index.username"},
			{name: "MAESTRO_ELASTICSEARCH_CLIENT_BASICAUTH_PASSWORD", to: "index.password", secret: true},
			{name: "MAESTRO_ELASTICSEARCH_CLIENT_TRUST_SELF_SIGNED_CERT", note: "index.caFile names the certificate authority to trust"},
			{name: "MAESTRO_ELASTICSEARCH_CLIENT_TRUST_SELF_SIGN_CERT", note: "index.caFile names the certificate authority to trust"},
			{name: "MAESTRO_ELASTICSEARCH_CLIENT_DOCS_PER_BULK_REQ_MAX", note: "index.batchBytes bounds a bulk request by its size"},
			{name: "MAESTRO_ELASTICSEARCH_CLIENT_RETRY_*", note: retried},
			{name: "MAESTRO_ELASTICSEARCH_CLIENT_CONNECTION_TIMEOUT", note: retried},
			{name: "MAESTRO_ELASTICSEARCH_CLIENT_SOCKET_TIMEOUT", note: retried},
			{name: "MAESTRO_ELASTICSEARCH_VERSION", note: engine},
			{name: "MAESTRO_ELASTICSEARCH_INDEXES_ANALYSIS_CENTRIC_ENABLED", to: documents, note: "decides documents"},
			{name: "MAESTRO_ELASTICSEARCH_INDEXES_FILE_CENTRIC_ENABLED", to: documents, note: "decides documents"},
			{name: "MAESTRO_ELASTICSEARCH_INDEXES_ANALYSIS_CENTRIC_ALIAS", to: "repositories[#].indexName"},
			{name: "MAESTRO_ELASTICSEARCH_INDEXES_FILE_CENTRIC_ALIAS", to: "repositories[#].indexName"},
			{name: "MAESTRO_ELASTICSEARCH_INDEXES_ANALYSIS_CENTRIC_NAME", note: "tutti makes and names the indices behind an alias itself"},
			{name: "MAESTRO_ELASTICSEARCH_INDEXES_FILE_CENTRIC_NAME", note: "tutti makes and names the indices behind an alias itself"},

			{name: "MAESTRO_SONG_INDEXABLE_STUDY_STATES_CSV", to: "repositories[#].song.states"},
			{name: "MAESTRO_SONG_INDEXABLE_STUDY_STATES", to: "repositories[#].song.states"},
			{name: "MAESTRO_SONG_PAGE_LIMIT", to: "repositories[#].pageSize"},
			{name: "MAESTRO_SONG_TIMEOUT_SEC_STUDY", to: "repositories[#].timeout", by: timeouts},
			{name: "MAESTRO_SONG_TIMEOUT_SEC_ANALYSIS", note: "repositories[].timeout applies to every call"},
			{name: "MAESTRO_SONG_MAX_RETRIES", note: retried},

			{name: "MAESTRO_KAFKA_BROKERS", to: events + "brokers"},
			{name: "MAESTRO_KAFKA_SERVER", to: events + "brokers"},
			{name: "MAESTRO_KAFKA_SERVERS", to: events + "brokers"},
			{name: "MAESTRO_KAFKA_GROUP_ID", to: events + "group"},
			{name: "MAESTRO_KAFKA_INDEX_REQUEST_TOPIC", to: requests + "requestTopic"},
			{name: "MAESTRO_KAFKA_INDEX_REQUEST_DLQ", note: letters},
			{name: "MAESTRO_KAFKA_ENABLED", to: events + "brokers", note: "decides whether brokers are set"},
			{name: "MAESTRO_DISABLE_EVENT_INDEXING", to: events + "brokers", note: "decides whether brokers are set"},
			{name: "MAESTRO_DISABLE_INDEXING", standard: "false", ask: "tutti always indexes what it is asked to; do not send requests to it instead"},
			{name: "SPRING_CLOUD_STREAM_KAFKA_BINDER_BROKERS", to: events + "brokers"},
			{name: "SPRING_CLOUD_STREAM_BINDINGS_SONGINPUT_DESTINATION", to: events + "topic"},
			{name: "SPRING_CLOUD_STREAM_BINDINGS_SONGINPUT_GROUP", to: events + "group"},
			{name: "SPRING_CLOUD_STREAM_BINDINGS_INPUT_DESTINATION", to: requests + "requestTopic"},
			{name: "SPRING_CLOUD_STREAM_BINDINGS_INPUT_GROUP", to: requests + "group"},
			{name: "SPRING_CLOUD_STREAM_KAFKA_BINDINGS_*", note: letters},

			{name: "MAESTRO_LOGGING_LEVEL", to: "log.level"},
			{name: "MAESTRO_LOGGING_LEVEL_ROOT", to: "log.level"},
			{name: "LOGGING_LEVEL_ROOT", to: "log.level", by: level},
			{name: "LOGGING_*", note: "log.level applies to the whole process"},
			{name: "MAESTRO_SERVER_PORT", to: "server.listen", by: port},
			{name: "SERVER_PORT", to: "server.listen", by: port},
			{name: "MAESTRO_OPENAPI_PATH", note: "tutti serves /openapi.json"},
			{name: "SPRINGDOC_*", note: "tutti serves /openapi.json"},
			{name: "MANAGEMENT_*", note: "tutti serves /ready and /metrics"},
			{name: "MAESTRO_FAILURELOG_*", note: letters},
			{name: "MAESTRO_NOTIFICATIONS_SLACK_URL", note: "alert on the metrics of /metrics", secret: true},
			{name: "MAESTRO_NOTIFICATIONS_*", note: "alert on the metrics of /metrics"},
			{name: "MAESTRO_EXCLUSION_RULES_*", by: excluded},
			{name: "EXCLUSION_RULES_BY_ID_*", by: excluded},
			{name: "MAESTRO_WEBCLIENT_*", note: "index.maxRecordBytes bounds a record"},
			{name: "SPRING_*"},
			{name: "NODE_ENV"},
		},
	}
}
