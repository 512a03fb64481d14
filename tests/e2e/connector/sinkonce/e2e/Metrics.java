package sinkonce.e2e;

import java.io.IOException;
import javax.management.JMException;
import javax.management.MBeanServerConnection;
import javax.management.ObjectName;
import javax.management.remote.JMXConnector;
import javax.management.remote.JMXConnectorFactory;
import javax.management.remote.JMXServiceURL;

/** Reads what another JVM of this machine counts, over JMX. */
final class Metrics {
    private Metrics() {
    }

    static double sum(int port, String pattern, String attribute) throws IOException {
        JMXServiceURL address = new JMXServiceURL("service:jmx:rmi:///jndi/rmi://127.0.0.1:" + port + "/jmxrmi");
        try (JMXConnector connector = JMXConnectorFactory.connect(address)) {
            MBeanServerConnection server = connector.getMBeanServerConnection();
            double sum = 0;
            for (ObjectName name : server.queryNames(new ObjectName(pattern), null))
                sum += ((Number) server.getAttribute(name, attribute)).doubleValue();
            return sum;
        } catch (JMException e) {
            throw new IOException(e);
        }
    }
}
