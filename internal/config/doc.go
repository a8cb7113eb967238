// Package config owns the configuration: a YAML file and the environment become one validated Config, and every fault is
// named with its key's path, all at once (CONTRACT section 9). It imports core alone and opens nothing but the files that
// it is told to read.
//
// The environment of an existing Maestro, version 4 or 5, is read as well, so that a deployment moves over unchanged. It is
// Maestro's when a MAESTRO_REPOSITORIES_… or MAESTRO_ELASTICSEARCH_… variable is there, and fills what neither the file
// nor a TUTTI_ variable says, key by key, with two exceptions: the repositories are Maestro's only when tutti has no list
// of its own, because two lists cannot be matched by their numbers; and the credentials of the index only when none is
// given, because half of each would be what nobody has configured. An empty variable counts as none. Exclusion rules (MAESTRO_EXCLUSIONRULES_…,
// MAESTRO_EXCLUSION_RULES_…) stop the start, wherever the rest of the configuration comes from: without them tutti would
// index what Maestro leaves out. Anything else that Maestro knows and tutti does not is named by Config.Warnings.
//
//	Maestro 5                                     Maestro 4                                        tutti
//	MAESTRO_ELASTICSEARCH_NODES                   MAESTRO_ELASTICSEARCH_CLUSTERNODES[_<n>]         index.url
//	MAESTRO_ELASTICSEARCH_CLIENT_BASICAUTH_USER   the same                                         index.username
//	MAESTRO_ELASTICSEARCH_CLIENT_BASICAUTH_PASSWORD  the same                                      index.password
//	MAESTRO_REPOSITORIES_<i>_BASE_URL             MAESTRO_REPOSITORIES_<i>_URL                     repositories[i].url
//	…_CODE, …_NAME                                the same                                         code, name
//	…_TYPE                                        song                                             type
//	…_INDEX_NAME                                  MAESTRO_ELASTICSEARCH_INDEXES_ANALYSISCENTRIC_ALIAS  indexName
//	…_PAGINATION_SIZE                             MAESTRO_SONG_PAGELIMIT                           pageSize
//	…_SONG_ORGANIZATION, …_SONG_COUNTRY           …_ORGANIZATION, …_COUNTRY                        organization, country
//	…_SONG_INDEXABLE_STUDY_STATES                 MAESTRO_SONG_INDEXABLESTUDYSTATESCSV             song.states
//	…_LYRIC_CATEGORY_ID, …_LYRIC_VALID_DATA_ONLY                                                   lyric.categoryId, lyric.validOnly
//	MAESTRO_KAFKA_BROKERS                         SPRING_CLOUD_STREAM_KAFKA_BINDER_BROKERS         …kafka.brokers
//	MAESTRO_KAFKA_GROUP_ID                        SPRING_CLOUD_STREAM_BINDINGS_[SONG]INPUT_GROUP   …kafka.group
//	…_KAFKA_DOCUMENT_UPDATE_TOPIC                 SPRING_CLOUD_STREAM_BINDINGS_SONGINPUT_DESTINATION  notifications.kafka.topic
//	MAESTRO_KAFKA_INDEX_REQUEST_TOPIC             SPRING_CLOUD_STREAM_BINDINGS_INPUT_DESTINATION   ingest.kafka.requestTopic
//	MAESTRO_LOGGING_LEVEL                         MAESTRO_LOGGING_LEVEL_ROOT                       log.level
//
// The environment of an existing Arranger 3 is read too, where neither the file nor a TUTTI_ variable nor Maestro's says
// anything, and likewise: an empty variable counts as none, the credentials are taken as a whole or not at all. Its names
// are plain, and other programs have some of them, so Config.Warnings names each key that was taken from one. An ES_HOST
// without a scheme is http, and without a port as well it is port 9200. What else Arranger knows is named in a warning, with
// what says the same here, when CONFIGS_PATH or ES_HOST shows that the environment is an Arranger's.
//
//	Arranger 3                     tutti
//	CONFIGS_PATH                   catalogues.dir
//	ES_HOST                        index.url
//	ES_USER, ES_PASS               index.username, index.password
//	DISABLE_GRAPHQL_INTROSPECTION  catalogues.disableGraphQLIntrospection
//	NODE_ENV=production            Config.Catalogues.Production, which no key says
package config
