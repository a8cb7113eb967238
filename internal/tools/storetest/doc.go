// Package storetest opens stores for tests and runs a suite on every supported database: always SQLite, and PostgreSQL when built
// with the tag services, on the server that TUTTI_TEST_POSTGRES_URL names.
//
// It must not import other packages of tutti than core and store.
package storetest
