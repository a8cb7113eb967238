// Package storetest opens stores for tests, and runs one suite on every database that the store can be: SQLite always,
// and PostgreSQL when it is built with the tag services and TUTTI_TEST_POSTGRES_URL names a server.
//
// It must not import other packages of tutti than core and store.
package storetest
