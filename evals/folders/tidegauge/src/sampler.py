"""Reads one pressure sensor."""

from typing import Protocol

MAX_RETRIES = 5
TIMEOUT_S = 2.5


class Sensor(Protocol):
    name: str

    def read(self, timeout: float) -> float | None: ...


class SensorSilent(Exception):
    """A sensor does not answer."""


def read_level(sensor: Sensor, datum: float) -> float:
    """Water level above the datum in metres.

    Raises:
        SensorSilent: the sensor did not answer within TIMEOUT_S seconds, MAX_RETRIES times.
    """
    for _ in range(MAX_RETRIES):
        value = sensor.read(timeout=TIMEOUT_S)
        if value is not None:
            return value / 9.81 - datum
    raise SensorSilent(sensor.name)
