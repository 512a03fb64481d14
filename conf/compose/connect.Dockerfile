# Kafka's own image as a Connect worker, with the connector of the end-to-end test as its plugin.
FROM maven:3-eclipse-temurin-17 AS build
WORKDIR /src
COPY tests/e2e/pom.xml ./
RUN mvn -B -q dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory=/jars
COPY tests/e2e/connector connector/
RUN javac -nowarn -cp '/jars/*' -d classes $(find connector -name '*.java') \
 && mkdir -p classes/META-INF/services /plugin \
 && echo sinkonce.e2e.HttpSinkConnector >classes/META-INF/services/org.apache.kafka.connect.sink.SinkConnector \
 && jar cf /plugin/sinkonce-e2e.jar -C classes .

FROM apache/kafka:4.1.1
COPY --from=build /plugin /opt/connect-plugins/sinkonce-e2e/
CMD ["/opt/kafka/bin/connect-standalone.sh", "/etc/connect/worker.properties", "/etc/connect/orders.properties"]
