package sinkonce.e2e;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.connect.errors.ConnectException;
import org.apache.kafka.connect.errors.RetriableException;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.sink.SinkTask;

/**
 * Writes records in transactions and waits for each commit.  Whatever the database or the connection says is a
 * RetriableException, on a new connection: the worker then delivers all records again.
 */
public class JdbcSinkTask extends SinkTask {
    private static final ObjectMapper JSON = new ObjectMapper();

    private AbstractConfig config;
    private Connection connection;

    @Override
    public void start(Map<String, String> properties) {
        config = new AbstractConfig(JdbcSinkConnector.CONFIG, properties, false);
    }

    @Override
    public void put(Collection<SinkRecord> records) {
        List<SinkRecord> all = new ArrayList<>(records);
        int size = config.getInt("batch.max.size");
        try {
            for (int from = 0; from < all.size(); from += size)
                write(all.subList(from, Math.min(from + size, all.size())));
        } catch (SQLException e) {
            stop();
            context.timeout(config.getLong("retry.backoff.ms"));
            throw new RetriableException(e);
        } catch (JsonProcessingException e) {
            throw new ConnectException(e);
        }
    }

    private void write(List<SinkRecord> records) throws SQLException, JsonProcessingException {
        if (connection == null) {
            connection = DriverManager.getConnection(config.getString("jdbc.url"));
            connection.setAutoCommit(false);
        }
        try (PreparedStatement statement = connection.prepareStatement(config.getString("jdbc.statement"))) {
            for (SinkRecord record : records) {
                statement.setString(1, record.originalTopic());
                statement.setInt(2, record.originalKafkaPartition());
                statement.setLong(3, record.originalKafkaOffset());
                statement.setString(4, JSON.writeValueAsString(record.value()));
                statement.addBatch();
            }
            statement.executeBatch();
        }
        connection.commit();
    }

    @Override
    public void stop() {
        try {
            if (connection != null)
                connection.close();
        } catch (SQLException e) {
            // The next one is a new connection all the same.
        }
        connection = null;
    }

    @Override
    public String version() {
        return "1";
    }
}
