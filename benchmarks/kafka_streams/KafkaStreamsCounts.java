import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.time.format.DateTimeParseException;
import java.time.temporal.ChronoUnit;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Repartitioned;

/**
 * Clickmill's live counts in Kafka Streams: clicks by URL and by country, each by the minute and the hour of the click.
 *
 * <p>Arguments: bootstrap servers, topic, its partitions, how many records it has, a folder for the state, threads. Reads
 * the topic to its end and prints one line of JSON: records and counts made, the seconds from the first record to the
 * last count, and the processor seconds of them. Unlike Clickmill it keeps no clicks and knows no duplicates, looks no
 * country up, and leaves URLs as they are.
 */
public final class KafkaStreamsCounts {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final List<String> KEYS = List.of("url", "country");
    private static final byte[] NOTHING = {};

    public static void main(String[] arguments) throws Exception {
        String topic = arguments[1];
        int partitions = Integer.parseInt(arguments[2]);
        long records = Long.parseLong(arguments[3]);
        AtomicLong begun = new AtomicLong();
        AtomicLong processorBefore = new AtomicLong();
        AtomicLong read = new AtomicLong();
        AtomicLong toCount = new AtomicLong();
        AtomicLong counted = new AtomicLong();
        CountDownLatch done = new CountDownLatch(1);

        StreamsBuilder builder = new StreamsBuilder();
        KStream<byte[], JsonNode> clicks = builder
            .stream(topic, Consumed.with(Serdes.ByteArray(), Serdes.ByteArray()))
            .mapValues(line -> {
                if (begun.compareAndSet(0, System.nanoTime())) {
                    processorBefore.set(processorNanos());
                }
                return click(line);
            });
        for (String key : KEYS) {
            clicks
                .flatMap((ignored, click) -> {
                    List<KeyValue<String, byte[]>> windows = click == null ? List.of() : windows(click, key);
                    toCount.addAndGet(windows.size());
                    // Branches take a record one after the other: with the last one it is done.
                    if (key.equals(KEYS.get(KEYS.size() - 1))) {
                        read.incrementAndGet();
                    }
                    return windows;
                })
                .repartition(Repartitioned.<String, byte[]>as("by-" + key)
                    .withKeySerde(Serdes.String())
                    .withValueSerde(Serdes.ByteArray())
                    .withNumberOfPartitions(partitions))
                .peek((window, nothing) -> counted.incrementAndGet())
                .groupByKey()
                .count(Materialized.as("counts-by-" + key));
        }
        Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, "counts-of-" + topic);
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, arguments[0]);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, arguments[4]);
        settings.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, Integer.parseInt(arguments[5]));
        settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        settings.put(StreamsConfig.consumerPrefix(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG), "earliest");
        try (KafkaStreams streams = new KafkaStreams(builder.build(), settings)) {
            streams.setUncaughtExceptionHandler(error -> {
                error.printStackTrace();
                System.exit(1);
                return null;
            });
            streams.start();
            while (read.get() < records || counted.get() < toCount.get()) {
                Thread.sleep(20);
            }
            double seconds = (System.nanoTime() - begun.get()) / 1e9;
            double processor = (processorNanos() - processorBefore.get()) / 1e9;
            System.out.printf(
                "{\"records\": %d, \"counted\": %d, \"seconds\": %f, \"processor_seconds\": %f}%n",
                read.get(), counted.get(), seconds, processor);
        }
    }

    /** The click of a line; null of one that is none. */
    private static JsonNode click(byte[] line) {
        try {
            JsonNode click = JSON.readTree(line);
            return click != null && click.hasNonNull("url") && click.hasNonNull("ts") ? click : null;
        } catch (IOException malformed) {
            return null;
        }
    }

    /** A click's key in its minute and its hour; none if its time is no time. */
    private static List<KeyValue<String, byte[]>> windows(JsonNode click, String key) {
        try {
            Instant at = OffsetDateTime.parse(click.get("ts").asText()).toInstant();
            JsonNode of = key.equals("country") ? click.path("geo") : click;
            String name = of.path(key).asText("");
            return List.of(
                KeyValue.pair("60 " + at.truncatedTo(ChronoUnit.MINUTES) + " " + name, NOTHING),
                KeyValue.pair("3600 " + at.truncatedTo(ChronoUnit.HOURS) + " " + name, NOTHING));
        } catch (DateTimeParseException noTime) {
            return List.of();
        }
    }

    private static long processorNanos() {
        return ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean())
            .getProcessCpuTime();
    }
}
