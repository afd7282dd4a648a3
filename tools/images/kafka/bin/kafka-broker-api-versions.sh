#!/bin/bash
exec java -Xmx128m -XX:TieredStopAtLevel=1 -cp '/opt/kafka/libs/*' \
    org.apache.kafka.tools.BrokerApiVersionsCommand "$@"
