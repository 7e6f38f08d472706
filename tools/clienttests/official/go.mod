module github.com/whippet-mq/whippet/tools/clienttests/official

go 1.25.0

require github.com/apache/iggy/foreign/go v0.0.0-00010101000000-000000000000
